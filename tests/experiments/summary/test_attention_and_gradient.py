import numpy as np
import pytest
import torch
from scipy import stats

from heedful.experiments.claim import column, mean_of
from heedful.experiments.reviews import reviews
from heedful.experiments.summary.attention_and_gradient import AttentionAndGradient
from heedful.experiments.workspace import Workspace
from heedful.models.single_layer import SingleLayer

FORMS = ["G-avg", "G-l1", "G-l2", "G×I", "G-avg, other class", "|G-avg|", "|G×I|"]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return AttentionAndGradient().measure(Workspace(tmp_path_factory.mktemp("attention-and-gradient")))


def of(numbers, attention, gradient, kind="pearson", name="value"):
    return column(numbers["documents"], name, attention=attention, gradient=gradient, kind=kind)


def test_correlations_are_those_of_the_network_s_own_attention_and_gradient(numbers, paper):
    for number, review in enumerate(reviews(8, 0)[1]):
        document = paper.encode(review.text)
        words = slice(1, len(document.ids))
        slopes = {}
        for label in (0, 1):
            e = paper.embed([document]).to(paper.network.W_q.dtype).detach().requires_grad_()
            paper.network(e)[0, label].backward()
            slopes[label] = e.grad[0, words]
        with torch.no_grad():
            alpha = paper.network.attention(e)[0, :, words]
        gradient = {
            "G-avg": slopes[1].mean(dim=1),
            "G-l1": slopes[1].abs().sum(dim=1),
            "G-l2": slopes[1].square().sum(dim=1).sqrt(),
            "G×I": (slopes[1] * e.detach()[0, words]).sum(dim=1),
            "G-avg, other class": slopes[0].mean(dim=1),
        }
        gradient |= {f"|{name}|": gradient[name].abs() for name in ("G-avg", "G×I")}
        assert list(gradient) == FORMS
        for name, seen in (("α-avg", alpha.mean(dim=0)), ("α-max", alpha.amax(dim=0))):
            for form, slope in gradient.items():
                pair = seen.numpy(), slope.numpy()
                assert of(numbers, name, form)[number] == pytest.approx(stats.pearsonr(*pair).statistic, abs=1e-9)
                ranked = of(numbers, name, form, "spearman")[number]
                assert ranked == pytest.approx(stats.spearmanr(*pair).statistic, abs=1e-9)


def test_the_figure_shows_every_mean_and_every_review(numbers):
    (axes,) = AttentionAndGradient().draw(numbers)["attention-and-gradient"].axes
    assert [label.get_text() for label in axes.get_xticklabels()] == FORMS
    for name, bars in zip(("α-avg", "α-max"), axes.containers, strict=True):
        means = [mean_of(of(numbers, name, form)) for form in FORMS]
        assert bars.get_label() == name
        assert bars[0].get_ydata() == pytest.approx([mean.value for mean in means])
        ends = [segment[:, 1] for segment in bars[2][0].get_segments()]
        assert np.array(ends) == pytest.approx(np.array([[mean.low, mean.high] for mean in means]))
    dots = [line.get_ydata() for line in axes.lines if line.get_alpha() == 0.15]
    expected = [of(numbers, name, form) for name in ("α-avg", "α-max") for form in FORMS]
    assert [list(dot) for dot in dots] == expected


def test_a_size_is_followed_and_a_sign_is_not(numbers):
    size, signed, other, picture = AttentionAndGradient().claims(numbers)
    assert [size.verdict, signed.verdict, other.verdict] == ["agrees", "differs", "differs"]
    assert picture.why.startswith("In part")
    assert str(len(of(numbers, "α-avg", "G-l1"))) in size.why


def test_the_verdicts_can_turn(numbers):
    def claims(of_value):
        rows = [{**row, "value": of_value(row["document"])} for row in numbers["documents"]]
        return AttentionAndGradient().claims({**numbers, "documents": rows})

    high = claims(lambda document: 0.5 + document / 100)
    assert [claim.verdict for claim in high[:3]] == ["agrees", "agrees", "differs"]
    assert high[3].why.startswith("It does:")
    none = claims(lambda document: 0.1 * (-1) ** document)
    assert [claim.verdict for claim in none[:3]] == ["differs", "differs", "agrees"]
    assert none[3].why.startswith("It does not")


def test_the_other_class_is_not_the_one_that_is_explained(tmp_path, paper):
    text, both = "a dull film , but a bright story", {}
    for classes in (("negative", "positive"), ("positive", "negative")):
        workspace = Workspace(tmp_path / classes[0], text=text)
        workspace.__dict__["model"] = SingleLayer(paper.network, paper.vocabulary, classes)
        both[classes] = AttentionAndGradient().measure(workspace)
    first, second = both.values()
    assert of(first, "α-avg", "G-avg") == of(second, "α-avg", "G-avg, other class")
    assert of(second, "α-avg", "G-avg") == of(first, "α-avg", "G-avg, other class")
