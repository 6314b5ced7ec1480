import pytest

from heedful.document import check_absence
from heedful.document.draws import WordDraws, draws_of
from heedful.errors import BadInput


def test_an_absence_says_where_words_are_drawn_from_how_often_and_with_which_seed():
    assert draws_of("marginal:imdb") == WordDraws("marginal", "imdb", 10, 0)
    assert draws_of("conditional:20:a/model:x") == WordDraws("conditional", "a/model:x", 20, 0)
    assert draws_of("marginal:7:3:words 1.txt") == WordDraws("marginal", "words 1.txt", 7, 3)
    assert draws_of("replace:film") is None
    assert "20 draws" in draws_of("marginal:20:imdb").note


@pytest.mark.parametrize("absence", ["marginal", "marginal:", "conditional:20", "marginal:20:1:"])
def test_an_absence_without_a_source_is_refused(absence):
    with pytest.raises(BadInput, match="does not say where words are drawn from"):
        check_absence(absence)


@pytest.mark.parametrize("absence", ["marginal:0:imdb", "marginal:10001:imdb", "marginal:2:4294967296:imdb"])
def test_no_draws_too_many_draws_and_a_seed_that_is_too_large_are_refused(absence):
    with pytest.raises(BadInput, match="needs 1 to 10,000 draws"):
        check_absence(absence)
