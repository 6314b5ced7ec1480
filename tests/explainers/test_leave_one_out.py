import numpy as np

import heedful
from tests.straightforward import Straightforward


def test_each_score_is_what_the_model_loses(tiny):
    text = "good film was dull"
    words = text.split()
    plain = Straightforward(tiny)
    for absence, hole in (("replace", ["neverseen"]), ("delete", [])):
        expected = [
            plain.predict([text])[0, 1] - plain.predict([" ".join(words[:i] + hole + words[i + 1 :])])[0, 1]
            for i in range(4)
        ]
        scores = heedful.explain(tiny, text, "leave-one-out", target=1, absence=absence).scores
        assert np.allclose(scores, expected, atol=1e-12)


def test_a_word_the_replacement_equals_gets_nothing(tiny):
    assert heedful.explain(tiny, "good film zzz", "leave-one-out").scores[2] == 0
