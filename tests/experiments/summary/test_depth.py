import numpy as np
import pytest
from scipy import stats

from heedful.experiments.claim import column, mean_of
from heedful.experiments.classifiers import train_classifier
from heedful.experiments.method_correlations import choose_texts
from heedful.experiments.summary.depth import Depth
from heedful.experiments.variant_tests import variant_tests
from heedful.experiments.variants import TINY, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.transformer import TransformerConfig

VARIANTS = ["plain layer", "1 layer", "2 layers", "4 layers", "6 layers"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("depth"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return Depth().measure(workspace)


def test_every_depth_is_trained_and_learns(numbers):
    assert [model["variant"] for model in numbers["models"]] == VARIANTS
    assert all(model["n_right"] > 0.9 * model["n_test"] for model in numbers["models"])


def test_a_document_s_numbers_are_those_of_the_trained_model(numbers, workspace):
    config = sized_config(workspace, TransformerConfig(depth=4, skip=True, norm=True))
    model = train_classifier(workspace, "4-layers", config, review_texts(workspace), TINY)
    assert (len(model.network.layers), model.network.config.skip, model.network.config.norm) == (4, True, True)
    text = choose_texts(model, review_texts(workspace).test, 6, workspace.seed)[2]
    alpha = explain(model, text, "attention-mean", layer=0)
    lime = explain(model, text, "lime", unit="type", n_samples=300)
    gradient = explain(model, text, "gradient-x-input").to("type")
    expected = {
        "α ~ G-l1": stats.pearsonr(alpha.scores, explain(model, text, "gradient-l1").scores).statistic,
        "LIME ~ α": stats.pearsonr(lime.scores, alpha.to("type").scores).statistic,
        "LIME ~ G×I": stats.pearsonr(lime.scores, gradient.scores).statistic,
    }
    for measure, value in expected.items():
        (result,) = column(
            numbers["documents"], "value", variant="4 layers", document=2, measure=measure, kind="pearson"
        )
        # Batches and single texts differ by rounding in single precision.
        assert result == pytest.approx(value, abs=1e-4)


def test_all_depths_explain_the_same_texts(numbers):
    for variant in VARIANTS:
        assert len(column(numbers["documents"], "value", variant=variant, measure="LIME ~ α", kind="pearson")) == 6
    measures = {row["measure"] for row in numbers["documents"] if row["variant"] == "2 layers"}
    assert "LIME ~ Theorem 5.1" not in measures
    assert "LIME ~ Theorem 5.1" in {row["measure"] for row in numbers["documents"] if row["variant"] == "plain layer"}


def test_the_figure_shows_the_means_of_every_depth(numbers):
    upper, lower = Depth().draw(numbers)["depth"].axes
    bars = {bar.get_label(): bar[0].get_ydata() for axes in (upper, lower) for bar in axes.containers}
    for measure in ("α ~ G-l1", "α ~ G-avg", "LIME ~ G×I", "LIME ~ IG", "|LIME| ~ α", "LIME ~ α"):
        each = [
            mean_of(column(numbers["documents"], "value", variant=variant, measure=measure, kind="pearson")).value
            for variant in VARIANTS
        ]
        assert bars[measure] == pytest.approx(each)
    assert len(bars["LIME ~ Theorem 5.1"]) == 1
    assert [label.get_text().split("\n")[0] for label in lower.get_xticklabels()] == VARIANTS


def test_the_quick_form_decides_nothing_and_the_full_form_does(numbers):
    first, *each = Depth().claims(numbers)
    assert (first.verdict, first.ours) == ("not measured", "")
    assert "Tiny models on synthetic texts cannot decide it" in first.why
    assert {claim.verdict for claim in each} == {"not measured"}
    full = {**numbers, "models": [{**row, "quick": False} for row in numbers["models"]]}
    first, *each = Depth().claims(full)
    assert len(each) == len(VARIANTS)
    n = sum(one.survives for one in variant_tests(numbers["documents"]))
    assert (first.verdict, first.ours) == ("new", f"{n} of 5 variants")
    rng = np.random.default_rng(0)
    blind = [
        {**row, "value": rng.normal(0, 0.1)} if row["measure"] == "α ~ G-l1" else row for row in numbers["documents"]
    ]
    assert Depth().claims({**full, "documents": blind})[0].ours == "0 of 5 variants"


def test_run_again_it_gives_the_same_numbers(numbers, workspace):
    surveys = sorted((workspace.folder / "steps").glob("survey-6-layers-*"))
    surveys[0].unlink()
    again = Depth().measure(workspace)
    assert np.array_equal(column(again["documents"], "value"), column(numbers["documents"], "value"))
