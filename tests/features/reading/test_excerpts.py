import numpy as np

from heedful.features.reading import excerpts
from heedful.features.reading.excerpts import excerpts_of
from tests.features.reading.planted import pairs_where, random_texts, read_words


def activation(words, place):
    return (1 + place / 10 + len(words) / 100) * (words[place] in ("good", "dull"))


def test_the_strongest_texts_are_those_with_the_largest_activations():
    read = read_words(list(dict.fromkeys(random_texts(60))))
    chosen = excerpts_of(pairs_where(read, activation), read)
    strongest = [own for own in chosen if own.quantile is None]
    largest = sorted((max(activation(words, n) for n in range(len(words))) for words in read.pieces), reverse=True)
    assert np.allclose([own.activation for own in strongest], largest[:10])
    assert len({own.text for own in chosen}) == len(chosen) == 13


def test_a_window_has_the_activation_of_every_token(monkeypatch):
    monkeypatch.setattr(excerpts, "BEFORE", 3)
    monkeypatch.setattr(excerpts, "BEHIND", 2)
    read = read_words(random_texts(30))
    for own in excerpts_of(pairs_where(read, activation), read):
        words = read.pieces[own.text]
        peak = own.start + own.peak
        assert own.tokens == read.tokens[own.text][max(0, peak - 3) : peak + 3]
        places = range(own.start, own.start + len(own.tokens))
        assert np.allclose(own.activations, [activation(words, place) for place in places])


def test_equal_windows_are_shown_once():
    read = read_words(["the film was good", "a dull film", "the film was good", "the film was good"])
    chosen = excerpts_of(pairs_where(read, activation), read)
    assert ["".join(own.tokens) for own in chosen] == ["the film was good", "a dull film"]
    assert chosen[0].text == 0


def test_lower_quantiles_come_from_weaker_tokens():
    read = read_words([f"{text} {n}" for n, text in enumerate(random_texts(200))])
    pairs = pairs_where(read, activation)
    lower = [own for own in excerpts_of(pairs, read) if own.quantile is not None]
    assert [own.quantile for own in lower] == [0.75, 0.5, 0.25]
    for own in lower:
        share = (pairs.values <= own.activation).mean()
        assert abs(share - own.quantile) < 0.1


def test_the_text_form_marks_the_token():
    read = read_words(["the film was good"])
    (own,) = excerpts_of(pairs_where(read, activation), read)
    assert repr(own) == "<1.34: the film was[ good]>"
