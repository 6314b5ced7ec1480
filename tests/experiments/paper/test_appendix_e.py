import shutil

import numpy as np
import pytest
from scipy import stats

import heedful
from heedful.datasets.imdb import Imdb
from heedful.experiments.claim import column
from heedful.experiments.paper.appendix_e import AppendixE, _the_papers_split
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.variants import review_texts
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("appendix-e"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return AppendixE().measure(workspace)


@pytest.fixture(scope="module")
def model(numbers, workspace):
    return heedful.load(str(workspace.folder / "model"))


def test_the_model_is_left_to_be_loaded(numbers, workspace, model):
    texts = review_texts(workspace).test
    predicted = model([example.text for example in texts]).argmax(axis=1)
    n_right = sum(int(a) == example.label for a, example in zip(predicted, texts, strict=True))
    assert numbers["models"][0]["n_right"] == n_right > 0.9 * len(texts)
    assert model.network.config.nonlinearity == "relu"


@pytest.mark.parametrize("law", ["delete", "replace"])
def test_figure_6_is_the_mean_of_five_runs_of_lime(numbers, model, law):
    asked = {"unit": "type", "target": 1, "n_samples": 500, "absence": law, "design": "independent"}
    runs = np.stack([heedful.explain(model, FIGURE_4, "lime", seed=seed, **asked).scores for seed in range(5)])
    assert column(numbers["figure_6"], "lime", law=law) == pytest.approx(runs.mean(axis=0), abs=1e-6)
    assert column(numbers["figure_6"], "sd", law=law) == pytest.approx(runs.std(axis=0, ddof=1), abs=1e-6)
    document = model.encode(FIGURE_4)
    first = model.attention([document])[0, 0].mean(axis=0)[: len(document.ids)]
    words = [piece for piece in dict.fromkeys(document.pieces) if piece != "[cls]"]
    expected = [sum(a for a, piece in zip(first, document.pieces, strict=True) if piece == word) for word in words]
    assert column(numbers["figure_6"], "alpha", law=law) == pytest.approx(expected, abs=1e-6)


def test_figure_6_shows_the_words_with_their_spread(numbers):
    drawn = AppendixE().draw(numbers)
    (axes,) = drawn["figure-6"].axes
    dots, _, (arms,) = axes.containers[0]
    alpha, lime, sd = (np.array(column(numbers["figure_6"], name, law="delete")) for name in ("alpha", "lime", "sd"))
    assert dots.get_xdata() == pytest.approx(alpha)
    assert dots.get_ydata() == pytest.approx(lime)
    ends = np.array([segment[:, 1] for segment in arms.get_segments()])
    assert ends == pytest.approx(np.stack([lime - sd, lime + sd], axis=1))
    named = {text.get_text(): text.xy for text in axes.texts}
    rows = [row for row in numbers["figure_6"] if row["law"] == "delete"]
    strongest = sorted(rows, key=lambda row: -abs(row["lime"]))[:8]
    assert named == {row["word"]: (row["alpha"], row["lime"]) for row in strongest}


def test_reviews_are_counted_by_what_the_model_calls_them(numbers):
    axes = AppendixE().draw(numbers)["by-prediction"].axes[0]
    for label, bars in enumerate(axes.containers):
        values = column(
            numbers["documents"], "value", variant="2 layers", measure="LIME ~ α", kind="pearson", predicted=label
        )
        counts = np.histogram(values, np.linspace(-1, 1, 21))[0]
        assert [bar.get_height() for bar in bars] == counts.tolist()
    names = ["predicted negative", "predicted positive"]
    assert set(names) < set(axes.get_legend_handles_labels()[1])
    assert [patch.get_label() for patch in axes.patches if patch.get_label() in names] == names


def test_a_tiny_model_measures_nothing_of_the_paper_s(numbers):
    claims = AppendixE().claims(numbers)
    assert [claim.verdict for claim in claims] == ["not measured"] * 3 + ["new", "not measured", "not measured"]
    assert (claims[0].published, claims[0].ours) == ("82.22%", "")
    for claim, sizes in ((claims[1], False), (claims[2], True)):
        lime, alpha = (np.array(column(numbers["figure_6"], name, law="delete")) for name in ("lime", "alpha"))
        expected = stats.pearsonr(abs(lime) if sizes else lime, alpha).statistic
        low, high = stats.pearsonr(abs(lime) if sizes else lime, alpha).confidence_interval(0.95)
        assert claim.ours == f"{expected:.3f} [{low:.3f}, {high:.3f}]"


def full(numbers, n_right: int, of_value) -> list:
    """The claims of a full run with that many reviews right and those correlations, of ten times as many reviews."""
    model = {**numbers["models"][0], "quick": False, "n_test": 1000, "n_right": n_right}
    rng = np.random.default_rng(0)
    rows = [
        {**row, "document": 10 * row["document"] + more, "value": of_value(row) + 0.01 * rng.standard_normal()}
        for row in numbers["documents"]
        for more in range(10)
    ]
    return AppendixE().claims({**numbers, "models": [model], "documents": rows})


def test_the_verdicts_of_a_full_run_can_turn(numbers):
    side = full(numbers, 825, lambda row: 0.5 if row["predicted"] else -0.5)
    assert (side[0].verdict, side[4].verdict) == ("agrees", "agrees")
    assert side[0].ours.startswith("82.50% [")
    assert "The published value lies in our 95 % confidence interval." in side[0].why
    # Below our bar of before is still near; three points above, which was called agreement, is not.
    assert full(numbers, 815, lambda row: 0.1)[0].verdict == "agrees"
    blind = full(numbers, 880, lambda row: 0.1)
    assert (blind[0].verdict, blind[4].verdict) == ("differs", "differs")
    assert {claim.verdict for claim in side[1:3]} <= {"agrees", "differs"}
    assert "tiny" not in " ".join(claim.why for claim in side)


def test_a_text_of_one_s_own_is_drawn(tmp_path, workspace, numbers):
    text = "the plot is awful and the music is great , a funny story with a weak ending"
    shutil.copytree(workspace.folder, tmp_path / "own")
    for path in (tmp_path / "own" / "steps").glob("figure-6-*"):
        path.unlink()
    own = AppendixE().measure(Workspace(tmp_path / "own", text=text))
    assert {row["word"] for row in own["figure_6"]} == set(text.split())
    assert own["documents"] == numbers["documents"]


def test_the_full_form_trains_on_the_paper_s_20_000_reviews(data_folder):
    """Appendix F: 20,000 to train on, 5,000 to validate, 25,000 to test; before, it was trained on all 25,000."""
    texts = _the_papers_split()
    assert (len(texts.train), len(texts.test)) == (20_000, 25_000)
    assert list(texts.train) == list(Imdb().examples("train"))
