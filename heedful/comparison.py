"""Every method that fits a model, side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
from jaxtyping import Float

from heedful.agreement import rank_correlation
from heedful.document import Document
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.explainers import answer, ask, configure
from heedful.explainers import methods as known_methods
from heedful.explanation import Explanation
from heedful.models import Model
from heedful.settings import setting_types
from heedful.target import Target


@dataclass(frozen=True, eq=False)
class Comparison:
    """Explanations of one text for one target, why the other methods gave none, and the attention behind them."""

    explanations: tuple[Explanation, ...]
    skipped: Mapping[str, str]
    maps: Float[np.ndarray, "layer head query key"] | None

    @property
    def document(self) -> Document:
        return self.explanations[0].document

    def __getitem__(self, method: str) -> Explanation:
        found = {explanation.method: explanation for explanation in self.explanations}
        if method not in found:
            raise BadInput(self.skipped[method]) if method in self.skipped else unknown_name("method", method, found)
        return found[method]

    def agreement(self) -> Float[np.ndarray, "method method"]:
        """Spearman's ρ between every two methods. A description: two methods may agree and both be wrong."""
        return np.array([[rank_correlation(a, b) for b in self.explanations] for a in self.explanations])

    def as_dict(self) -> dict[str, object]:
        """Everything but the times and the attention maps, ready for JSON."""
        agreement = [[None if isnan(value) else value for value in row] for row in self.agreement().tolist()]
        explanations = [explanation.as_dict() for explanation in self.explanations]
        return {"explanations": explanations, "skipped": dict(self.skipped), "agreement": agreement}

    def _repr_html_(self) -> str:
        # As on Explanation: the notebook protocol puts the drawing on the value.
        from heedful.render.html import fragment

        return fragment(self.explanations)


def compare(
    model: Model,
    text: str,
    methods: Sequence[str] | None = None,
    *,
    target: int | str | Target | None = None,
    against: int | str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    **settings: object,
) -> Comparison:
    """Explains a text by every method, or by those named; attention and gradients are computed once for all.

    A setting such as `unit` or `n_samples` goes to every method that has it. A method that cannot answer for this model
    or this text is listed in `skipped` with its reason.
    """
    catalogue = known_methods()
    names = sorted(catalogue) if methods is None else list(methods)
    for name in names:
        if name not in catalogue:
            raise unknown_name("method", name, catalogue)
    has = {name: setting_types(catalogue[name]) for name in names}
    for setting in settings:
        if not any(setting in own for own in has.values()):
            raise unknown_name("setting", setting, set().union(*has.values()))
    explainers = [configure(name, {key: settings[key] for key in settings if key in has[name]}) for name in names]
    question = ask(model, [text], target, against)
    explanations: list[Explanation] = []
    skipped: dict[str, str] = {}
    for explainer in explainers:
        progress(explainer.name)
        try:
            explanations += answer(explainer, question)
        except HeedfulError as error:
            skipped[explainer.name] = str(error)
    if not explanations:
        raise BadInput(" ".join(skipped.values()) or "No method was named, so there is nothing to compare.")
    maps = model.maps(question.documents[0]) if "attention" in model.offers else None
    return Comparison(tuple(explanations), skipped, maps)
