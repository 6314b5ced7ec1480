"""Explanations of attention-based models that say how far they can be trusted.

import heedful

model = heedful.load("paper")
heedful.show(heedful.compare(model, "attention based explanations are popular but questionable"))
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful import features
    from heedful.document import Pair
    from heedful.document.detected import Regions
    from heedful.errors import HeedfulError
    from heedful.evaluation.comparison import Comparison
    from heedful.evaluation.diagnostics import diagnose
    from heedful.evaluation.off_data import off_data
    from heedful.evaluation.probe import probe, probes
    from heedful.evaluation.probe_report import ProbeReport
    from heedful.evaluation.report import Report
    from heedful.evaluation.roar import roar
    from heedful.evaluation.roar_curves import RoarCurves
    from heedful.evaluation.several import compare, trust
    from heedful.evaluation.soundness import soundness
    from heedful.exchange import read
    from heedful.experiments.run import reproduce
    from heedful.explainers import methods
    from heedful.explainers.explain import explain
    from heedful.explanation import Explanation
    from heedful.explanations import Explanations
    from heedful.explanations.store import open
    from heedful.family import FamilyPackage
    from heedful.features.feature_target import Feature
    from heedful.generation.as_model import continuation
    from heedful.generation.attribute import attribute
    from heedful.generation.attribution import Attribution
    from heedful.generation.bias import PairBias, bias
    from heedful.generation.context import context
    from heedful.generation.generate import generate
    from heedful.generation.generation import Generation
    from heedful.generation.patching import locate
    from heedful.generation.reliance import Reliance
    from heedful.models.bag import Bag
    from heedful.models.deaf import deaf
    from heedful.models.fitting.few_words import few_words
    from heedful.models.head_patterns import heads
    from heedful.models.load import load, wrap
    from heedful.perturb.scaffolded import scaffolded
    from heedful.render import show
    from heedful.target import Target

    datasets: FamilyPackage
    experiments: FamilyPackage
    metrics: FamilyPackage

__version__ = "0.1.0"
__all__ = [
    "Attribution",
    "Bag",
    "Comparison",
    "Explanation",
    "Explanations",
    "Feature",
    "Generation",
    "HeedfulError",
    "Pair",
    "PairBias",
    "ProbeReport",
    "Regions",
    "Reliance",
    "Report",
    "RoarCurves",
    "Target",
    "attribute",
    "bias",
    "compare",
    "context",
    "continuation",
    "datasets",
    "deaf",
    "diagnose",
    "experiments",
    "explain",
    "features",
    "few_words",
    "generate",
    "heads",
    "load",
    "locate",
    "methods",
    "metrics",
    "off_data",
    "open",
    "probe",
    "probes",
    "read",
    "reproduce",
    "roar",
    "scaffolded",
    "show",
    "soundness",
    "trust",
    "wrap",
]

_HOME = {
    "attribute": "generation.attribute",
    "Attribution": "generation.attribution",
    "Bag": "models.bag",
    "bias": "generation.bias",
    "PairBias": "generation.bias",
    "Comparison": "evaluation.comparison",
    "compare": "evaluation.several",
    "continuation": "generation.as_model",
    "deaf": "models.deaf",
    "diagnose": "evaluation.diagnostics",
    "HeedfulError": "errors",
    "explain": "explainers.explain",
    "methods": "explainers",
    "Explanation": "explanation",
    "Explanations": "explanations",
    "Feature": "features.feature_target",
    "few_words": "models.fitting.few_words",
    "context": "generation.context",
    "generate": "generation.generate",
    "Reliance": "generation.reliance",
    "Generation": "generation.generation",
    "heads": "models.head_patterns",
    "load": "models.load",
    "locate": "generation.patching",
    "off_data": "evaluation.off_data",
    "open": "explanations.store",
    "Pair": "document",
    "wrap": "models.load",
    "probe": "evaluation.probe",
    "probes": "evaluation.probe",
    "ProbeReport": "evaluation.probe_report",
    "Regions": "document.detected",
    "read": "exchange",
    "Report": "evaluation.report",
    "reproduce": "experiments.run",
    "roar": "evaluation.roar",
    "RoarCurves": "evaluation.roar_curves",
    "scaffolded": "perturb.scaffolded",
    "show": "render",
    "soundness": "evaluation.soundness",
    "Target": "target",
    "trust": "evaluation.several",
}


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> object:
    # torch takes more than a second to import, so nothing is imported before it is used.
    from importlib import import_module

    if name in ("datasets", "experiments", "features", "metrics"):
        return import_module(f"heedful.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    return getattr(import_module(f"heedful.{_HOME[name]}"), name)
