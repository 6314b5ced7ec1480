import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_maps.dependency_rules import ParsedWord
from heedful.models.attention_maps.syntax import RelationScores, over_texts, parser_of, relation_scores
from tests.families import build

TEXT = "the unbelievable film was not a bad story"
PARSE = [("det", 2), ("amod", 2), ("nsubj", 7), ("cop", 7), ("neg", 7), ("det", 7), ("amod", 7), ("ROOT", 7)]


def parse(text):
    """Every text is read like TEXT: a determiner, an adjective, its noun, and so on."""
    words, at = [], 0
    for (relation, head), word in zip(PARSE, text.split(), strict=False):
        words.append(ParsedWord(at, at + len(word), head, relation))
        at += len(word) + 1
    return words


def by_hand(document, maps, words, start, end):
    """The share of pairs whose second word is the one that the first attends to most, tokens counted one by one."""
    tokens = [[t for t, (a, b) in enumerate(document.spans) if a < w.end and b > w.start] for w in words]
    accuracy = np.zeros(maps.shape[:2])
    for layer, head in np.ndindex(*accuracy.shape):
        A, hits = maps[layer, head], 0
        for one, other in zip(start, end, strict=True):
            sums = {
                w: sum(A[q, k] for q in tokens[one] for k in tokens[w]) / len(tokens[one])
                for w in range(len(words))
                if w != one
            }
            hits += max(sums, key=sums.get) == other
        accuracy[layer, head] = hits / len(start)
    return accuracy


def test_a_head_finds_a_pair_if_the_other_word_gets_most_of_its_attention():
    model = build("bert")
    document, words = model.encode(TEXT), parse(TEXT)
    assert len(document.ids) > len(words) + 2
    maps = model.maps(document)
    scores = relation_scores(document, maps, words)
    assert set(scores) == {f"{one}→{two}" for r, _ in PARSE[:-1] for one, two in ((r, "head"), ("head", r))}
    for relation in ("det", "amod", "neg"):
        own = [(index, word.head) for index, word in enumerate(words) if word.relation == relation]
        down, up = zip(*own, strict=True)
        assert np.array_equal(scores[f"{relation}→head"].accuracy, by_hand(document, maps, words, down, up))
        assert np.array_equal(scores[f"head→{relation}"].accuracy, by_hand(document, maps, words, up, down))
    assert scores["det→head"].offsets == {2: 1.0}
    assert scores["head→amod"].offsets == {-1: 1.0}
    assert {float(x) for score in scores.values() for x in score.accuracy.flat} > {0.0, 1.0}


def test_the_pattern_of_a_relation_stands_beside_the_best_offset():
    model, text = build("bert"), TEXT
    result = heedful.heads(model, text, parse=parse)
    document = model.encode(text)
    for name, alone in relation_scores(document, model.maps(document), parse(text)).items():
        place = result.patterns.index(name)
        assert np.array_equal(result.scores[:, :, place], alone.accuracy)
        assert result.uniform[place] == max(alone.offsets.values())
        assert result.strongest(name, 1)[0][2] == alone.accuracy.max()
    assert result.as_rows()[-1]["pattern"] == result.patterns[-1] == "nsubj→head"
    with pytest.raises(BadInput, match="did you mean 'det→head'"):
        result.strongest("det→hed")


def test_a_text_without_the_relation_does_not_count():
    one, other = RelationScores(np.array([[1.0]]), {1: 0.5, 2: 0.5}), RelationScores(np.array([[0.0]]), {2: 1.0})
    accuracy, best = over_texts([{"a": one}, {}, {"a": other, "b": one}], (1, 1))
    assert np.array_equal(accuracy[:, 0, 0], [[1, np.nan], [np.nan, np.nan], [0, 1]], equal_nan=True)
    offsets = Counter({1: 0.5, 2: 1.5})
    assert best.tolist() == [max(offsets.values()) / 2, 0.5]


def test_words_that_were_cut_off_are_not_counted():
    model = build("bert")
    document = model.encode("the film" + " the" * 200)
    assert document.truncated
    end = len(document.text)
    late = [ParsedWord(0, 3, 1, "det"), ParsedWord(4, 8, 2, "nsubj"), ParsedWord(end - 3, end, 2, "ROOT")]
    assert set(relation_scores(document, model.maps(document), late)) == {"det→head", "head→det"}
    for wrong in ([ParsedWord(0, 3, 1, "det")], ["the"], [(0, 3, 0, None)]):
        with pytest.raises(BadInput, match="index of the head"):
            relation_scores(document, model.maps(document), wrong)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([], "has no words"),
        ([(0, 3), (4, 9)], "characters 4 to 9 of a text of 8"),
        ([(-1, 3), (4, 8)], "characters -1 to 3"),
        ([(3, 0), (4, 8)], "characters 3 to 0"),
        ([(0, 3), (2, 8)], "not overlap"),
        ([(0, 3), (0, 3)], "not overlap"),
        ([(4, 8), (0, 3)], "in its order"),
    ],
)
def test_a_parse_that_does_not_fit_the_text_is_refused(spans, message):
    with pytest.raises(BadInput, match=message):
        heedful.heads(build("bert"), ["the film"], None, parse=lambda _: [(*span, 0, "det") for span in spans])


class Token:
    """What is read of a spaCy token; every token depends on the second."""

    def __init__(self, idx, n, relation):
        self.idx, self.n, self.dep_, self.head = idx, n, relation, SimpleNamespace(i=1)

    def __len__(self):
        return self.n


def test_a_spacy_model_is_read_word_by_word(monkeypatch):
    words = [Token(0, 3, "det"), Token(4, 4, "ROOT")]

    def load(name):
        if name != "en":
            raise OSError
        return lambda _text: words

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    assert parser_of("en")("the film") == [ParsedWord(0, 3, 1, "det"), ParsedWord(4, 8, 1, "ROOT")]
    with pytest.raises(BadInput, match="spaCy has no model 'xx'"):
        parser_of("xx")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(Unsupported, match="needs spaCy"):
        parser_of("en")
