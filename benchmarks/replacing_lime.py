"""The official `lime` package made to replace removed words, as the paper's text says; by itself it deletes them."""

import numpy as np
from lime.lime_text import IndexedString, LimeTextExplainer

from heedful.models import Model

ABSENT = "neverseenword"


class Replacing(IndexedString):
    """An IndexedString that puts a word no model knows where others were removed."""

    def inverse_removing(self, words_to_remove: list[int]) -> str:
        gone = {position for word in words_to_remove for position in self.positions[word]}
        return "".join(ABSENT if i in gone else piece for i, piece in enumerate(self.as_list))


def official_lime(model: Model, text: str, words: list[str], n_samples: int, seed: int) -> np.ndarray:
    """Coefficients of class 1 for the words, of one run of the package with its own settings."""
    import lime.lime_text as package

    explainer = LimeTextExplainer(random_state=seed, split_expression=str.split)
    original = package.IndexedString
    package.IndexedString = Replacing
    try:
        found = explainer.explain_instance(text, model, labels=(1,), num_features=len(words), num_samples=n_samples)
    finally:
        package.IndexedString = original
    scores = {found.domain_mapper.indexed_string.word(i): score for i, score in found.local_exp[1]}
    return np.array([scores[word] for word in words])
