"""What the numbers of an attribution mean, in sentences for the page and the terminal."""

from math import exp

from heedful.generation.attribution import Attribution
from heedful.render.comparison_page import method_summary

_OF_THE_PART = {
    "log-probability": "the log-probability of the part",
    "logit": "the logit of the part",
    "entropy": "the entropy of the distribution before the part",
    "kl": "the divergence of the distribution before the part from the one without the context",
    "contrast": "the log-probability of the part less that of the token most likely instead without the context",
    "context-gain": "the log-probability of the part less that without the context",
}
_MEANINGS = {
    "shapley": "Scores are Shapley values: they divide {} with all sources, less that without any, among the sources.",
    "leave-one-out": "A score is the drop of {} when the source is removed.",
    "occlusion": "A score is the drop of {} when windows that hold the source are removed, for each of their units.",
    "gradient-x-input": "A score is the gradient of {} times the source's embedding: its effect to first order.",
    "integrated": "Scores add up to {}, less that at the baseline, along a straight path of embeddings.",
    "random": "Scores are random: the control.",
}


def quantity_of(attribution: Attribution) -> str:
    """What is explained of each part."""
    measure = str(attribution.settings.get("measure", "log-probability"))
    name = _OF_THE_PART.get(measure, measure)
    return name if attribution.settings.get("against") is None else f"{name} less that of the other output"


def meaning(attribution: Attribution) -> str:
    """What a score says; it depends on the method."""
    method, quantity = attribution.method, quantity_of(attribution)
    key = next((key for key in _MEANINGS if key in method), "")
    sentence = _MEANINGS[key] if key else f"{method_summary(method)} Explained is {{}}."
    sentences = [sentence.format(quantity)]
    first = attribution.explanations[0]
    if not first.signed:
        sentences.append("Scores have no sign: a large one says how much, not in which direction.")
    if first.settings.get("absence") == "cut":
        sentences.append(
            "A source is removed from the sight of the output alone; the rest of the prompt still reads it."
        )
    return " ".join(sentences)


def value_of(attribution: Attribution, number: int) -> str:
    """The explained quantity of a part, in words; of a log-probability also the probability."""
    value = attribution.explanations[number].output
    against = attribution.settings.get("against") is not None
    measure = str(attribution.settings.get("measure", "log-probability"))
    shown = f"{measure} {value:+.4g}" if measure in ("log-probability", "logit") else f"{measure} {value:.4g}"
    if against or measure == "context-gain":
        text = "less that without the context" if measure == "context-gain" else "less that of the other output"
        return f"{measure.replace('context-gain', 'log-probability')} {text} {value:+.4g}"
    return f"{shown}, probability {exp(min(value, 0.0)):.4g}" if measure == "log-probability" else shown


def passes_of(attribution: Attribution) -> str:
    """What the table cost."""
    n_masks = int(attribution.facts.get("masks", 0))
    if not n_masks:
        return "No masked copy of the text was evaluated."
    return f"{n_masks:,} masked copies of the text were evaluated, each once for all parts."
