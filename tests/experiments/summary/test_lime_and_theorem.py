import numpy as np
import pytest
import torch

from heedful.experiments.claim import column
from heedful.experiments.reviews import reviews
from heedful.experiments.summary.lime_and_theorem import LimeAndTheorem, _with_uniform_attention
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.vocabulary import UNK
from tests.conftest import tiny_model


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LimeAndTheorem().measure(Workspace(tmp_path_factory.mktemp("lime-and-theorem")))


def of(numbers, what, model, law, form):
    return column(numbers["documents"], what, model=model, law=law, form=form)


def test_with_uniform_attention_a_word_s_effect_is_its_value_less_the_unknown_word_s(numbers, paper):
    """By hand: f is a mean over positions, so LIME is (w_t − w_h)/T_max; printed is 3/2 of it."""
    net = paper.network
    text = reviews(6, 0)[1][0].text
    document = paper.encode(text)
    with torch.no_grad():
        row = torch.einsum("ho,hod->d", net.W_l[:, 1], net.W_v) / net.config.n_heads
        w = (net.W_e[torch.from_numpy(document.ids)].double() - net.W_e[UNK].double()) @ row / net.config.T_max
    word_of, units = document.unit_of("type"), document.units("type")
    expected = [float(w[torch.from_numpy(word_of == number)].sum()) for number in range(len(units))]
    theorem, lime = (
        column(numbers["words"], name, model="uniform attention", document=0) for name in ("theorem", "lime")
    )
    assert theorem == pytest.approx([1.5 * value for value in expected], abs=1e-12)
    # The limit has a flat kernel and no ridge: the effect itself, where LIME's kernel of 25 was 2e-5 off.
    assert lime == pytest.approx(expected, rel=1e-7, abs=1e-10)
    assert of(numbers, "slope", "uniform attention", "replace", "printed") == pytest.approx([2 / 3] * 6, abs=1e-7)
    assert of(numbers, "slope", "uniform attention", "replace", "corrected") == pytest.approx([1.0] * 6, abs=1e-7)
    assert of(numbers, "largest", "uniform attention", "replace", "printed") == pytest.approx([1 / 256] * 6)


@pytest.mark.parametrize("law", ["replace", "delete"])
@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_slope_and_correlation_are_those_of_a_regression_over_the_words(numbers, paper, law, form):
    for number, review in enumerate(reviews(6, 0)[1]):
        theorem = explain(paper, review.text, "lime-theorem", target=1, unit="type", form=form).scores
        settings = {"absence": "delete", "n_samples": 1500} if law == "delete" else {}
        method = "lime" if law == "delete" else "lime-limit"
        lime = explain(paper, review.text, method, target=1, unit="type", **settings).scores
        assert of(numbers, "slope", "trained", law, form)[number] == pytest.approx(np.polyfit(theorem, lime, 1)[0])
        expected = np.corrcoef(theorem, lime)[0, 1]
        assert of(numbers, "pearson", "trained", law, form)[number] == pytest.approx(expected)


def test_the_figure_shows_the_words_and_both_slopes(numbers):
    axes = LimeAndTheorem().draw(numbers)["lime-and-theorem"].axes
    for panel, model in zip(axes, ("trained", "uniform attention"), strict=True):
        words, printed, ours = panel.lines
        assert list(words.get_xdata()) == column(numbers["words"], "theorem", model=model)
        assert list(words.get_ydata()) == column(numbers["words"], "lime", model=model)
        assert list(printed.get_ydata()) == list(printed.get_xdata())
        slope = np.mean(of(numbers, "slope", model, "replace", "printed"))
        assert ours.get_ydata() == pytest.approx(slope * ours.get_xdata())


def test_the_constant_is_corrected_and_a_good_match_is_called_so(numbers):
    # Six reviews leave a wide interval, so the correlation is set; the slopes are those measured.
    rows = [{**row, "pearson": 0.85 + 0.01 * row["document"]} for row in numbers["documents"]]
    match, constant, _, picture = LimeAndTheorem().claims({**numbers, "documents": rows})
    assert (match.verdict, constant.verdict) == ("new", "corrected")
    assert "explains more than half" in match.why
    assert "1.50 times too large" in constant.why
    assert picture.why.startswith("Qualitatively yes")


def test_the_verdicts_can_turn(numbers):
    def claims(**cells):
        # A little apart, so that there are intervals.
        rows = [
            {
                **row,
                **{name: value + row["document"] / 1e4 * (row["model"] == "trained") for name, value in cells.items()},
            }
            for row in numbers["documents"]
        ]
        return LimeAndTheorem().claims({**numbers, "documents": rows})

    weak = claims(pearson=0.5, slope=1.0)
    assert [claim.verdict for claim in weak[:2]] == ["new", "agrees"]
    assert "may not explain" in weak[0].why
    assert weak[3].why.startswith("No:")
    steep = claims(pearson=0.9, slope=1.4)
    assert [claim.verdict for claim in steep[1:3]] == ["differs", "differs"]
    assert "is not 1" in steep[3].why


def test_a_slope_agrees_with_one_only_if_its_interval_holds_one(numbers):
    def slope(values):
        rows = [{**row, "slope": values[row["document"]]} for row in numbers["documents"]]
        return LimeAndTheorem().claims({**numbers, "documents": rows})[2].verdict

    assert slope([0.8, 0.9, 1.0, 1.1, 1.2, 1.05]) == "agrees"
    assert slope([1.2, 1.3, 1.25, 1.3, 1.35, 1.2]) == "differs"


def test_learned_positions_stay_where_attention_is_made_uniform():
    model = tiny_model(positional="learned", padding="eos")
    other = _with_uniform_attention(model)
    assert torch.equal(other.network.W_p, model.network.W_p)
    assert np.allclose(other.attention([other.encode("good film")]), 1 / 16)
