import pytest
from scipy import stats

from heedful.experiments.claim import column, mean_of
from heedful.experiments.classifiers import as_single_layer, train_classifier
from heedful.experiments.method_correlations import choose_texts
from heedful.experiments.summary.data_sets import DataSets, _real
from heedful.experiments.training_texts import synthetic_pairs
from heedful.experiments.variant_tests import variant_tests
from heedful.experiments.variants import TINY, sized_config
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.transformer import TransformerConfig
from heedful.models.vocabulary import split_plain

VARIANTS = ["synthetic reviews", "synthetic topics", "synthetic pairs", "synthetic questions"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("data-sets"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return DataSets().measure(workspace)


def test_every_set_is_learnt(numbers):
    assert [model["variant"] for model in numbers["models"]] == VARIANTS
    *models, questions = numbers["models"]
    assert all(model["n_right"] > 0.9 * model["n_test"] for model in models)
    # A pooling layer cannot find the sentence that is asked about: of two places it often takes the wrong one.
    assert 0.3 < questions["n_right"] / questions["n_test"] < 0.95


def test_pairs_are_explained_as_one_text_for_the_class_that_is_predicted(numbers, workspace):
    pairs = synthetic_pairs(500, 200, 0)
    model = as_single_layer(
        train_classifier(
            workspace, "synthetic-pairs", sized_config(workspace, TransformerConfig(n_classes=3)), pairs, TINY
        )
    )
    text = choose_texts(model, pairs.test, 6, 0)[4]
    lime, gradient = (explain(model, text, method, unit="type") for method in ("lime-exact", "gradient-x-input"))
    assert "=>" in lime.units
    assert lime.target.index == int(model([text])[0].argmax())
    asked = {"variant": "synthetic pairs", "document": 4, "kind": "pearson"}
    (value,) = column(numbers["documents"], "value", measure="LIME ~ G×I", **asked)
    assert value == pytest.approx(stats.pearsonr(lime.scores, gradient.scores).statistic, abs=1e-6)
    (row,) = (
        row
        for row in numbers["documents"]
        if row["measure"] == "LIME" and asked.items() - {("kind", "pearson")} <= row.items()
    )
    assert row["predicted"] == lime.target.index


def test_the_figure_shows_the_means(numbers):
    upper, lower = DataSets().draw(numbers)["data-sets"].axes
    assert len(upper.containers) + len(lower.containers) == 7
    for bar in (*upper.containers, *lower.containers):
        means = [
            mean_of(column(numbers["documents"], "value", variant=variant, measure=bar.get_label(), kind="pearson"))
            for variant in VARIANTS
        ]
        assert bar[0].get_ydata() == pytest.approx([mean.value for mean in means])


def test_the_sentence_can_turn(numbers):
    assert DataSets().claims(numbers)[0].verdict == "not measured"
    numbers = {**numbers, "models": [{**row, "quick": False} for row in numbers["models"]]}
    first = DataSets().claims(numbers)[0]
    assert first.ours == f"{sum(one.survives for one in variant_tests(numbers['documents']))} of 4 variants"
    blind = [{**row, "value": 0.0} if row["measure"] == "α ~ G-l1" else row for row in numbers["documents"]]
    assert DataSets().claims({**numbers, "documents": blind})[0].ours == "0 of 4 variants"


def test_the_real_sets_are_five(data_folder, tmp_path):
    variants = _real(Workspace(tmp_path, quick=False))
    assert [variant.name for variant in variants] == ["IMDB", "SST-2", "AG News", "NLI", "QA"]
    assert [variant.config.n_classes for variant in variants] == [2, 2, 4, 3, 6]
    assert [variant.config.T_max for variant in variants] == [256, 64, 96, 64, 64]
    assert all(variant.config.plain and variant.config.depth == 1 for variant in variants)
    sizes = [(len(variant.texts.train), len(variant.texts.test)) for variant in variants]
    assert sizes == [(20_000, 25_000), (67_349, 872), (9_001, 7_600), (9_842, 9_824), (10_000, 1_000)]
    for pairs in variants[3:]:
        assert all(" => " in example.text for example in pairs.texts.test[:100])
        longest = max(len(split_plain(example.text)) for example in pairs.texts.test[:100])
        assert pairs.name == "NLI" or longest < pairs.config.T_max
