from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from heedful.datasets import Example
from heedful.experiments.method_correlations import (
    MethodScores,
    choose_texts,
    correlate_methods,
    correlation_rows,
    file_key,
    method_scores,
    pearson,
)
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.transformer import Transformer
from tests.conftest import tiny_model

TEXTS = ["the film was good , a very good story !", "a dull plot but the actor was bright ."]


def hand_made() -> MethodScores:
    """Seven positions of five words: the first word stands at three of them."""
    rng = np.random.default_rng(1)
    return MethodScores(
        predicted=1,
        word_of=np.array([0, 1, 0, 2, 3, 0, 4]),
        alpha=rng.random(7),
        g_avg=rng.standard_normal(7),
        g_l1=rng.random(7),
        g_x_input=rng.standard_normal(7),
        ig=rng.standard_normal(7),
        lime=rng.standard_normal(5),
        noise=np.full(5, 0.1),
        theorem=rng.standard_normal(5),
    )


def summed(seen: MethodScores, scores: np.ndarray) -> np.ndarray:
    return np.array([scores[seen.word_of == word].sum() for word in range(len(seen.lime))])


def test_correlations_are_those_of_scipy():
    seen = hand_made()
    expected = {
        "α ~ G-avg": (seen.alpha, seen.g_avg),
        "α ~ G-l1": (seen.alpha, seen.g_l1),
        "α ~ |G×I|": (seen.alpha, abs(seen.g_x_input)),
        "LIME ~ α": (seen.lime, summed(seen, seen.alpha)),
        "|LIME| ~ α": (abs(seen.lime), summed(seen, seen.alpha)),
        "LIME ~ G×I": (seen.lime, summed(seen, seen.g_x_input)),
        "LIME ~ IG": (seen.lime, summed(seen, seen.ig)),
        "LIME ~ Theorem 5.1": (seen.lime, seen.theorem),
    }
    rows = correlation_rows("some", 4, seen)
    values = {(row["measure"], row["kind"]): row["value"] for row in rows}
    for measure, pair in expected.items():
        assert values.pop((measure, "pearson")) == pytest.approx(stats.pearsonr(*pair).statistic)
        assert values.pop((measure, "spearman")) == pytest.approx(stats.spearmanr(*pair).statistic)
    assert values == {("LIME", "reliability"): pytest.approx(1 - 0.01 / np.var(seen.lime))}
    assert {(row["variant"], row["document"], row["predicted"]) for row in rows} == {("some", 4, 1)}


def test_without_a_theorem_there_is_no_row_of_it():
    rows = correlation_rows("some", 0, replace(hand_made(), theorem=None))
    assert not any(row["measure"] == "LIME ~ Theorem 5.1" for row in rows)


def test_what_is_constant_correlates_with_nothing():
    assert np.isnan(pearson(np.ones(4), np.arange(4.0)))
    flat = replace(hand_made(), alpha=np.full(7, 0.1))
    cells = {row["value"] for row in correlation_rows("some", 0, flat) if row["measure"] == "α ~ G-l1"}
    assert cells == {None}


def test_reliability_is_the_share_that_repeats():
    """Two runs of one truth with the noise that is said correlate by the reliability."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(200_000)
    runs = [truth + 0.7 * rng.standard_normal(len(truth)) for _ in range(2)]
    seen = replace(hand_made(), lime=runs[0], noise=np.full(len(truth), 0.7), theorem=None)
    assert seen.reliability() == pytest.approx(np.corrcoef(*runs)[0, 1], abs=0.01)


@pytest.mark.parametrize("deep", [False, True])
def test_views_are_the_methods_own(deep):
    single = tiny_model(n_classes=2)
    model = Transformer.of(single) if deep else single
    result = method_scores(model, TEXTS, 1, 200, 3)
    assert [seen.predicted for seen in result] == model(TEXTS).argmax(axis=1).tolist()
    for text, seen in zip(TEXTS, result, strict=True):
        scores = {
            name: explain(model, text, method, target=1, **settings).scores
            for name, method, settings in (
                ("alpha", "attention-mean", {"layer": 0}),
                ("g_avg", "gradient-mean", {}),
                ("g_l1", "gradient-l1", {}),
                ("g_x_input", "gradient-x-input", {}),
                ("ig", "integrated-gradients", {"baseline": "unknown", "n_steps": 32}),
            )
        }
        for name, expected in scores.items():
            assert getattr(seen, name) == pytest.approx(expected, abs=1e-9)
        asked = {"n_samples": 200, "seed": 3} if deep else {}
        line = explain(model, text, "lime" if deep else "lime-exact", target=1, unit="type", **asked)
        assert seen.lime == pytest.approx(line.scores, abs=1e-9)
        words = text.split()
        assert [line.units[word] for word in seen.word_of] == words
        assert (seen.theorem is None) == deep


def test_of_a_deep_model_the_first_layer_is_explained():
    from heedful.models.transformer import TransformerConfig, initial_network

    config = TransformerConfig(depth=2, skip=True, n_heads=2, T_max=16, d_e=8, d_att=4, d_out=4)
    single = tiny_model(n_classes=2)
    model = Transformer(initial_network(config, len(single.vocabulary), 0), single.vocabulary, ("a", "b"))
    (seen,) = method_scores(model, TEXTS[:1], None, 100, 0)
    first = model.attention([model.encode(TEXTS[0])])[0, 0].mean(axis=0)
    assert seen.alpha == pytest.approx(first[1 : 1 + len(seen.alpha)], abs=1e-6)


def test_a_survey_is_every_text_s_rows_and_resumes(tmp_path):
    model = tiny_model(n_classes=2)
    texts = [f"{text} {word}" for text in TEXTS for word in ("not", "very")]
    rows = correlate_methods(Workspace(tmp_path), "some kind", model, texts, 100, target=1)
    alone = [
        row
        for n, text in enumerate(texts)
        for row in correlation_rows("some kind", n, *method_scores(model, [text], 1, 100, 0))
    ]
    assert [{**row, "value": 0} for row in rows] == [{**row, "value": 0} for row in alone]
    assert [row["value"] for row in rows] == pytest.approx([row["value"] for row in alone], abs=1e-9)
    next((tmp_path / "steps").iterdir()).unlink()
    assert correlate_methods(Workspace(tmp_path), "some kind", model, texts, 100, target=1) == rows


def test_a_name_becomes_part_of_a_file_s():
    assert [file_key(name) for name in ("W_ℓ = identity", "2 layers", "AG News")] == [
        "w-identity",
        "2-layers",
        "ag-news",
    ]


def test_texts_of_too_few_known_words_are_left_out():
    model = tiny_model()
    examples = [Example(text, 0) for text in ("the film", "the film was good", "the the the the", "it sat on my mat")]
    assert sorted(choose_texts(model, examples, 4, 0, least=2)) == ["the film", "the film was good"]
    assert len(choose_texts(model, examples, 1, 0, least=2)) == 1
