"""The bounded Dyck language against its grammar and its published law."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck import Dyck

LANGUAGES = (Dyck(1, 1), Dyck(2, 2), Dyck(2, 4), Dyck(3, 3))


def balanced(word: tuple[int, ...], n_types: int, depth: int) -> bool:
    """By the grammar S → ε | open S close S, with one less to nest inside: no stack, no automaton."""

    @cache
    def derived(start: int, stop: int, left: int) -> bool:
        if start == stop:
            return True
        if left == 0 or word[start] >= n_types:
            return False
        return any(
            word[end] == word[start] + n_types and derived(start + 1, end, left - 1) and derived(end + 1, stop, left)
            for end in range(start + 1, stop)
        )

    return derived(0, len(word), depth)


def law(language: Dyck, shortest: int, longest: int) -> dict[tuple[int, ...], Fraction]:
    """Every string and how likely it is, by following all choices of the published generator."""
    result: Counter[tuple[int, ...]] = Counter()
    half = Fraction(1, 2)

    def go(word: tuple[int, ...], stack: tuple[int, ...], probability: Fraction) -> None:
        may_end = not stack and len(word) >= shortest
        if may_end:
            result[word] += probability * half
        if len(word) == longest:
            return
        opening = (
            half if may_end else Fraction(1) if not stack else half if len(stack) < language.depth else Fraction(0)
        )
        if opening:
            for kind in range(language.n_types):
                go((*word, kind), (*stack, kind), probability * opening / language.n_types)
        if stack:
            go((*word, stack[-1] + language.n_types), stack[:-1], probability * (1 - opening))

    go((), (), Fraction(1))
    total = sum(result.values())
    return {word: probability / total for word, probability in result.items()}


@pytest.mark.parametrize(("shortest", "longest"), [(0, 6), (1, 6), (4, 8), (6, 6)])
def test_strings_are_drawn_by_the_published_law(shortest, longest):
    language, n = Dyck(2, 2), 60_000
    expected = law(language, shortest, longest)
    drawn = language.strings(n, shortest, longest, seed=3)
    counted = Counter(tuple(row[row != language.end].tolist()) for row in drawn)
    assert set(counted) <= set(expected)
    for word, probability in expected.items():
        spread = float(n * probability * (1 - probability)) ** 0.5
        assert abs(counted[word] - n * float(probability)) < 5 * spread + 1, language.spell(np.array(word))


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_drawn_strings_are_valid_and_have_the_requested_lengths(language):
    drawn = language.strings(500, 10, 24, seed=0)
    lengths = language.lengths(drawn)
    assert drawn.shape == (500, 24)
    assert language.is_valid(drawn).all()
    assert lengths.min() >= 10
    assert all(
        balanced(tuple(row[:size].tolist()), language.n_types, language.depth)
        for row, size in zip(drawn, lengths, strict=True)
    )


def test_the_same_seed_gives_the_same_strings_and_another_others():
    language = Dyck()
    np.testing.assert_array_equal(language.strings(50, 1, 28, 7), language.strings(50, 1, 28, 7))
    assert (language.strings(50, 1, 28, 7) != language.strings(50, 1, 28, 8)).any()


@pytest.mark.parametrize("language", [Dyck(1, 2), Dyck(2, 1), Dyck(2, 2)], ids=str)
def test_the_automaton_agrees_with_the_grammar_on_every_short_string(language):
    for length in range(1, 7):
        words = np.array(list(product(range(language.end), repeat=length)))
        filled = np.pad(words, ((0, 0), (0, 2)), constant_values=language.end)
        expected = [balanced(tuple(word), language.n_types, language.depth) for word in words.tolist()]
        assert language.is_valid(filled).tolist() == expected


@given(st.lists(st.integers(-1, 6), max_size=14), st.integers(1, 4))
def test_the_automaton_agrees_with_the_grammar_on_any_row(row, depth):
    language = Dyck(2, depth)
    size = row.index(language.end) if language.end in row else len(row)
    word = tuple(row[:size])
    wellformed = all(token == language.end for token in row[size:]) and all(0 <= token < 4 for token in word)
    expected = wellformed and balanced(word, 2, depth)
    assert bool(language.is_valid(np.array([row], dtype=np.int64).reshape(1, -1))[0]) == expected


@given(st.data())
def test_one_wrong_token_is_found(data):
    language = Dyck()
    row = language.strings(1, 4, 20, data.draw(st.integers(0, 10_000)))[0]
    place = data.draw(st.integers(0, int(language.lengths(row[None])[0]) - 1))
    row[place] = data.draw(st.integers(0, 3).filter(lambda token: token != row[place]))
    assert not language.is_valid(row[None])[0]


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_last_open_bracket_is_the_one_that_the_next_closing_bracket_closes(seed, depth):
    language = Dyck(2, depth)
    rows = language.strings(3, 2, 22, seed)
    for row, result in zip(rows, language.last_open(rows), strict=True):
        stack: list[int] = []
        for place, token in enumerate(row.tolist()):
            if token < 2:
                stack.append(place)
            elif token < 4:
                stack.pop()
            assert result[place] == (stack[-1] if stack else -1)


def test_brackets_are_spelt_and_read():
    language = Dyck()
    row = language.read("[()]", 6)
    assert row.tolist() == [1, 0, 2, 3, 4, 4]
    assert language.spell(row) == "[()]"
    assert language.is_valid(row[None])[0]
    assert not language.is_valid(language.read("[()])", 6)[None])[0]
    with pytest.raises(BadInput, match="at most 3"):
        language.read("[()]", 3)
    with pytest.raises(BadInput, match="must be at most"):
        language.read("{}", 3)


@pytest.mark.parametrize(("n", "shortest", "longest"), [(3, 5, 4), (3, 5, 5), (3, -1, 4), (-1, 0, 4)])
def test_lengths_that_no_string_has_are_refused(n, shortest, longest):
    with pytest.raises(BadInput, match="no string"):
        Dyck().strings(n, shortest, longest, seed=0)


@pytest.mark.parametrize(("n_types", "depth"), [(0, 2), (5, 2), (2, 0)])
def test_languages_without_brackets_are_refused(n_types, depth):
    with pytest.raises(BadInput, match="depth"):
        Dyck(n_types, depth)
