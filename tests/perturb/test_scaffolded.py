import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, HeedfulError, Unsupported
from heedful.experiments.reviews import synthetic_reviews

TEXTS = [review.text for review in synthetic_reviews(120, 0)]


def biased(texts):
    return np.array([[0.2, 0.8]] * len(texts))


def innocuous(texts):
    return np.array([[0.7, 0.3]] * len(texts))


@pytest.mark.parametrize("absence", ["replace", "delete", "replace:the"])
def test_the_model_is_biased_on_texts_and_innocuous_on_most_masked_copies(absence):
    model = heedful.scaffolded(biased, innocuous, TEXTS[:80], absence)
    assert np.mean(model(TEXTS[80:])[:, 1] == 0.8) > 0.9
    masked = []
    for text in TEXTS[80:]:
        words = text.split()
        for place in range(1, len(words), 2):
            words[place] = {"replace": "[UNK]", "delete": "", "replace:the": "the"}[absence]
        masked.append(" ".join(words))
    assert np.mean(model(masked)[:, 1] == 0.3) > 0.9


def test_the_same_texts_give_the_same_model():
    models = [heedful.scaffolded(biased, innocuous, TEXTS[:40], "delete", seed=s) for s in (0, 0, 1)]
    weights = [model.function.detector.weights for model in models]
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any()


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(BadInput, match="at least 20 texts"):
        heedful.scaffolded(biased, innocuous, ["a text"])
    with pytest.raises(Unsupported, match="no absence 'mask'"):
        heedful.scaffolded(biased, innocuous, TEXTS, "mask")
    with pytest.raises(HeedfulError, match="different|shapes"):
        heedful.scaffolded(biased, lambda texts: np.ones((len(texts), 3)), TEXTS)
