"""Explanations of many texts, which the tests of this folder and of the pages share."""

from functools import cache

from scipy.special import log_softmax

import heedful
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from tests.conftest import tiny_model

TEXTS = (
    "The film was good, very good!",
    "the plot was dull but the actor was bright",
    "A bad film.",
    "not a good story",
    "the story was bad and the film dull",
    "a bright film and a good plot",
    "Good film, bad plot",
)


@cache
def explained(method="leave-one-out", target=None):
    """Each text of `TEXTS` explained for the class that a tiny model predicts, or for one class, and one refusal."""
    model = tiny_model()
    outputs = model([*TEXTS])
    predicted, confidence = outputs.argmax(axis=1).tolist(), log_softmax(outputs, axis=1).max(axis=1).tolist()
    items = [heedful.explain(model, text, method, target=target) for text in TEXTS]
    labels = [number % 3 for number in range(len(TEXTS))]
    return Explanations(
        (*items, Refusal("superb", "Lime needs at least 2 words; the document has 1.", method)),
        tuple(f"id-{number}" for number in range(len(TEXTS) + 1)),
        tuple(model.classes),
        (*labels, None),
        (*predicted, None),
        len(TEXTS) + 1,
        (*confidence, None),
    )
