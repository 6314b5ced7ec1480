import numpy as np
import pytest
from scipy import stats

from heedful.experiments.claim import column
from heedful.experiments.classifiers import train_classifier
from heedful.experiments.summary.no_final_layer import NoFinalLayer
from heedful.experiments.variants import TINY, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.transformer import TransformerConfig

VARIANTS = ["W_ℓ trained", "W_ℓ = identity", "equal values"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("no-final-layer"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return NoFinalLayer().measure(workspace)


def test_all_three_learn(numbers):
    assert [model["variant"] for model in numbers["models"]] == VARIANTS
    assert all(model["n_right"] > 0.9 * model["n_test"] for model in numbers["models"])


@pytest.mark.parametrize(("key", "n_heads"), [("w-identity", 2), ("equal-values", 2)])
def test_without_it_the_final_layer_is_the_identity(numbers, workspace, key, n_heads):
    config = sized_config(workspace, TransformerConfig(d_out=2, n_heads=n_heads))
    (layer,) = train_classifier(workspace, key, config, review_texts(workspace), TINY).network.layers
    assert layer.weights["W_o"].tolist() == [[[1.0, 0.0], [0.0, 1.0]]] * n_heads
    values = layer.weights["W_v"].detach().numpy()
    assert np.count_nonzero(values) == (2 if key == "equal-values" else values.size)


def test_folding_it_in_moves_nothing(numbers):
    assert [row["what"] for row in numbers["folded"]] == ["f", "α", "G×I", "LIME"]
    assert max(column(numbers["folded"], "difference")) < 1e-9


def test_where_values_are_equal_a_word_s_effect_grows_with_its_attention(numbers):
    rows = numbers["own_head"]
    for document in range(6):
        alpha, lime = (column(rows, name, document=document) for name in ("alpha", "lime"))
        assert stats.pearsonr(alpha, lime).statistic > 0.8
        assert max(alpha) <= 1


def test_the_figures_show_the_numbers(numbers):
    drawn = NoFinalLayer().draw(numbers)
    dots = drawn["own-head"].axes[0].lines[0]
    assert list(dots.get_xdata()) == column(numbers["own_head"], "alpha")
    assert list(dots.get_ydata()) == column(numbers["own_head"], "lime")
    names = [label.get_text().split("\n")[0] for label in drawn["no-final-layer"].axes[0].get_xticklabels()]
    assert names == VARIANTS


def test_the_claims_are_computed_and_can_turn(numbers):
    identity, without, equal, own, *_ = NoFinalLayer().claims(numbers)
    assert identity.verdict == "corrected"
    each = {
        name: np.array(column(numbers["documents"], "value", variant=name, measure="|LIME| ~ α", kind="pearson"))
        for name in VARIANTS
    }
    for claim, name in ((without, VARIANTS[1]), (equal, VARIANTS[2])):
        assert claim.ours.startswith(f"{(each[name] - each[VARIANTS[0]]).mean():.3f} [")
        assert "Tiny models" in claim.why
    correlations = [
        stats.pearsonr(*(column(numbers["own_head"], name, document=n) for name in ("alpha", "lime"))).statistic
        for n in range(6)
    ]
    assert own.ours.startswith(f"{np.mean(correlations):.3f} [")
    moved = [{**row, "difference": 0.1} for row in numbers["folded"]]
    assert NoFinalLayer().claims({**numbers, "folded": moved})[0].verdict == "differs"
    better = [
        {**row, "value": 2.0} if (row["variant"], row["measure"]) == (VARIANTS[2], "|LIME| ~ α") else row
        for row in numbers["documents"]
    ]
    assert "explains better" in NoFinalLayer().claims({**numbers, "documents": better})[2].why
