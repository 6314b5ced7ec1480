from importlib.resources import files
from itertools import islice

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.metrics import measure
from heedful.metrics.text_robustness import TextRobustness, misspelt, neighbours, synonyms
from heedful.perturb.masks import generator
from tests.families import PAIR, build, texts_for
from tests.metrics.masked_text import evaluation_by

TEXT = "A very good film , but the PLOT was not good . Dull !"


def probability(model, text, target):
    logits = model([text])[0]
    return np.exp(logits[target]) / np.exp(logits).sum()


def test_every_word_has_synonyms_and_is_one_of_theirs():
    for word, others in synonyms().items():
        assert others
        assert word.isalpha()
        assert word == word.lower()
        assert all(word in synonyms()[other] and other != word for other in others)
    lines = files("heedful.metrics").joinpath("neighbours.txt").read_text().splitlines()
    assert sum(len(line.split()) for line in lines) == len(synonyms()), "a word stands in two groups"
    assert len(lines) >= 150


def test_a_misspelling_is_one_edit_away_and_keeps_the_first_letter():
    rng = np.random.default_rng(0)
    slips = {-1: 0, 0: 0, 1: 0}
    for word in ["film", "wonderful", "moot", "aaaa"] * 50:
        slip = misspelt(word, rng)
        assert slip != word
        assert slip[0] == word[0]
        longer, shorter = sorted((slip, word), key=len, reverse=True)
        if len(slip) == len(word):
            differ = [place for place in range(len(word)) if slip[place] != word[place]]
            assert len(differ) == 2
            assert differ[1] == differ[0] + 1
            assert sorted(slip) == sorted(word)
        else:
            assert any(longer[:place] + longer[place + 1 :] == shorter for place in range(len(longer)))
        slips[len(slip) - len(word)] += 1
    assert min(slips.values()) > 20


def test_a_neighbour_differs_in_all_occurrences_of_one_word(tiny):
    document = tiny.encode(TEXT)
    texts = list(neighbours(document, generator(0, document)))
    assert len(set(texts)) == len(texts) >= 4
    assert TEXT not in texts
    for text in texts:
        pairs = list(zip(TEXT.split(), text.split(), strict=True))
        changed = {(old.lower(), new.lower()) for old, new in pairs if old != new}
        assert len(changed) == 1
        ((old, _),) = changed
        assert all(a != b for a, b in pairs if a.lower() == old)
        assert all(a.isupper() == b.isupper() and a[0].isupper() == b[0].isupper() for a, b in pairs if len(a) > 1)
    words = {word.lower() for word in TEXT.split()}
    used = [new for text in texts for new in set(text.lower().split()) - words]
    assert any(new in synonyms() for new in used)
    assert any(new not in synonyms() for new in used)


def test_the_same_seed_finds_the_same_neighbours_and_another_seed_others(tiny):
    document = tiny.encode(TEXT)
    one, same, other = (list(islice(neighbours(document, generator(seed, document)), 6)) for seed in (0, 0, 1))
    assert one == same != other


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-x-input", "random"])
def test_it_is_the_mean_distance_to_the_explanations_of_near_texts(tiny, method):
    evaluation = evaluation_by(tiny, method, TEXT)
    target, document = evaluation.explanation.target.index, evaluation.explanation.document
    near = [
        text
        for text in islice(neighbours(document, generator(2, document)), 12)
        if abs(probability(tiny, text, target) - probability(tiny, TEXT, target)) <= 0.2
    ][:3]
    assert len(near) == 3
    ours = evaluation.scores / np.linalg.norm(evaluation.scores)
    distances = []
    for text in near:
        scores = heedful.explain(tiny, text, method, target=target).scores
        distances.append(np.linalg.norm(ours - scores / np.linalg.norm(scores)))
    value = measure(TextRobustness(n_neighbours=3, most_moved=0.2, seed=2), evaluation)
    assert value == pytest.approx(np.mean(distances), rel=1e-12)


@pytest.mark.parametrize("unit", ["word", "type", "token", "sentence"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_texts_that_fall_into_other_units_do_not_count(family, unit):
    model, text = build(family), texts_for("bert")[1]
    evaluation = evaluation_by(model, "random", text, unit=unit)
    document = evaluation.explanation.document
    alike = [
        text
        for text in islice(neighbours(document, generator(0, document)), 16)
        if all(model.encode(text).n_units(one) == document.n_units(one) for one in ("word", unit))
    ]
    near = TextRobustness(most_moved=1.0)._near(evaluation)
    assert near == alike[:4]
    if near:
        assert 0 <= measure(TextRobustness(most_moved=1.0), evaluation) <= 2


def test_a_function_of_texts_can_be_measured_too():
    def counts(texts):
        return [[0.0, 0.1 * text.count("o")] for text in texts]

    model = heedful.wrap(counts, returns="logits")
    assert 0 <= measure(TextRobustness(), evaluation_by(model, "leave-one-out", TEXT)) <= 2
    with pytest.raises(Unsupported, match="not known whether this model returns logits"):
        measure(TextRobustness(), evaluation_by(heedful.wrap(counts), "leave-one-out", TEXT))


def test_without_a_neighbour_of_similar_output_there_is_no_value():
    model = heedful.wrap(lambda texts: [[0.0, 9.0 if text == TEXT else 0.0] for text in texts], returns="logits")
    with pytest.raises(Unsupported, match="changed the output too much"):
        measure(TextRobustness(), evaluation_by(model, "random", TEXT))


def test_pictures_pairs_and_no_neighbours_are_refused(tiny):
    with pytest.raises(Unsupported, match="an image has no words"):
        measure(TextRobustness(), evaluation_by(build("vit"), "random", texts_for("vit")[0]))
    with pytest.raises(Unsupported, match="pairs of texts are not supported"):
        measure(TextRobustness(), evaluation_by(build("bert"), "random", PAIR))
    with pytest.raises(BadInput, match="n_neighbours ≥ 1"):
        measure(TextRobustness(n_neighbours=0), evaluation_by(tiny, "random", TEXT))
