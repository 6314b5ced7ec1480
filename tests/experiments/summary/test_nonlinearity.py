import pytest

from heedful.experiments.claim import column, mean_of
from heedful.experiments.classifiers import train_classifier
from heedful.experiments.summary.nonlinearity import NonLinearity
from heedful.experiments.variant_tests import variant_tests
from heedful.experiments.variants import TINY, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.transformer import TransformerConfig

VARIANTS = ["none", "ReLU", "GELU"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("nonlinearity"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return NonLinearity().measure(workspace)


def test_the_three_differ_in_nothing_but_the_bend(numbers, workspace):
    assert [model["variant"] for model in numbers["models"]] == VARIANTS
    for model, bend in zip(numbers["models"], ("none", "relu", "gelu"), strict=True):
        texts = review_texts(workspace)
        kept = train_classifier(
            workspace,
            model["variant"].lower(),
            sized_config(workspace, TransformerConfig(nonlinearity=bend)),
            texts,
            TINY,
        )
        predicted = kept([example.text for example in texts.test]).argmax(axis=1)
        n_right = sum(int(a) == example.label for a, example in zip(predicted, texts.test, strict=True))
        assert model["n_right"] == n_right > 0.9 * model["n_test"]


def test_lime_is_exact_for_the_plain_layer_and_sampled_for_the_others(numbers):
    def reliability(variant):
        return column(numbers["documents"], "value", variant=variant, measure="LIME", kind="reliability")

    assert min(reliability("none")) == pytest.approx(1.0, abs=1e-6)
    for variant in ("ReLU", "GELU"):
        assert all(0 < value < 1 for value in reliability(variant))


def test_the_figure_shows_the_means(numbers):
    upper, lower = NonLinearity().draw(numbers)["nonlinearity"].axes
    for axes in (upper, lower):
        for bar in axes.containers:
            kept = [
                column(numbers["documents"], "value", variant=variant, measure=bar.get_label(), kind="pearson")
                for variant in VARIANTS
            ]
            assert bar[0].get_ydata() == pytest.approx([mean_of(values).value for values in kept if values])


def test_the_sentence_can_turn(numbers):
    assert NonLinearity().claims(numbers)[0].verdict == "not measured"
    numbers = {**numbers, "models": [{**row, "quick": False} for row in numbers["models"]]}
    first = NonLinearity().claims(numbers)[0]
    assert first.ours == f"{sum(one.survives for one in variant_tests(numbers['documents']))} of 3 variants"
    signed = ("LIME ~ G×I", "LIME ~ IG")
    turned = [{**row, "value": -0.9 if row["measure"] in signed else row["value"]} for row in numbers["documents"]]
    claims = NonLinearity().claims({**numbers, "documents": turned})
    assert claims[0].ours == "0 of 3 variants"
    assert all("α is nearer to LIME than G×I" in claim.why for claim in claims[1:])
