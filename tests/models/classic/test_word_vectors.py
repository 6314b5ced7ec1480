import numpy as np
import pytest

from heedful.errors import BadInput
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.classic.word_vectors import begin_with_vectors
from heedful.models.vocabulary import build_vocabulary

VOCABULARY = build_vocabulary(["good film", "bad film"], 1)


def written(tmp_path, text):
    path = tmp_path / "vectors.vec"
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(path):
    network = initial_classic(ClassicConfig(encoder="average", d_e=3, d_hidden=4), len(VOCABULARY), 0)
    before = network.W_e.detach().numpy().copy()
    begin_with_vectors(network, VOCABULARY, path)
    return before, network.W_e.detach().numpy()


@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_words_of_the_file_begin_with_its_vectors_and_others_as_before(tmp_path, header):
    before, after = rows_of(written(tmp_path, f"{header}good 1 2 3\nFilm 4 5 6\nunheard 7 8 9\nfilm 0 0 0\n"))
    places = VOCABULARY.index
    assert np.array_equal(after[places["good"]], [1, 2, 3])
    # The first of several lines counts.
    assert np.array_equal(after[places["film"]], [4, 5, 6])
    assert np.array_equal(after[places["bad"]], before[places["bad"]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good 1 2\n", "2 numbers, but d_e is 3; set --d-e 2"),
        ("good 1 2 x\n", "line 1 is not a word and numbers"),
        ("good 1 2 nan\n", "not finite"),
        ("other 1 2 3\n", "none of the 5 words"),
        ("", "none of the 5 words"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, text, message):
    with pytest.raises(BadInput, match=message):
        rows_of(written(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        rows_of(tmp_path / "missing.vec")
