"""Appendix B.1: distances to LIME review by review, what they add up to, and what is drawn of them."""

from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.experiments.claim import column
from heedful.experiments.paper import appendix_b1
from heedful.experiments.paper.appendix_b1 import PUBLISHED, SPREAD, AppendixB1
from heedful.experiments.paper.lime_runs import LAWS
from heedful.experiments.reviews import synthetic_reviews
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module", autouse=True)
def synthetic_sentiment():
    """Made-up reviews, so that the numbers are the same with and without the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appendix_b1, "reviews", lambda n, seed: ("synthetic", synthetic_reviews(n, seed)))
        yield


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("appendix-b1"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return AppendixB1().measure(workspace)


def test_rows_are_the_reviews(numbers, paper):
    texts = synthetic_reviews(40, 0)
    assert [row["index"] for row in numbers["reviews"]] == list(range(40))
    for row, review in zip(numbers["reviews"], texts, strict=True):
        document = paper.encode(review.text)
        assert (row["n_words"], row["n_types"]) == (document.n_units("word"), document.n_units("type"))
        assert row["read_whole"]
        assert row["right"] == (paper.predict([review.text])[0].argmax() == review.label)


@pytest.mark.parametrize("law", LAWS)
def test_distances_are_those_of_limes_own_runs_up_to_their_noise(numbers, paper, law):
    for index in (0, 5):
        text, row = synthetic_reviews(40, 0)[index].text, numbers["reviews"][index]
        asked = {"target": 1, "unit": "type"}
        runs = [
            heedful.explain(paper, text, "lime", absence=law, design="independent", seed=seed, **asked).scores
            for seed in range(10)
        ]
        mean, noise = np.mean(runs, axis=0), np.linalg.norm(np.std(runs, axis=0, ddof=1))
        assert row[f"{law} noise"] == pytest.approx(noise, rel=0.5)
        slack = 2 * noise / np.sqrt(5)
        assert row[f"{law} length"] == pytest.approx(np.linalg.norm(mean), abs=slack)
        for name, method, own in (
            ("printed", "lime-theorem", {}),
            ("corrected", "lime-theorem", {"form": "corrected"}),
            ("exact", "lime-exact", {}),
        ):
            scores = heedful.explain(paper, text, method, **own, **asked).scores
            assert row[f"{law} {name}"] == pytest.approx(np.linalg.norm(mean - scores), abs=slack)
            assert row[f"{law} r {name}"] == pytest.approx(np.corrcoef(mean, scores)[0, 1], abs=0.05)


def test_the_exact_value_is_one_standard_error_away_under_replacement_alone(numbers):
    summary = {(row["law"], row["what"]): row for row in numbers["summary"]}
    assert summary["replace", "exact / standard error"]["mean"] == pytest.approx(1, abs=0.1)
    assert summary["delete", "exact / standard error"]["low"] > 3


def test_the_summary_is_the_mean_of_the_rows(numbers):
    for row in numbers["summary"]:
        name = f"{row['law']} {row['what']}".strip()
        if name in numbers["reviews"][0]:
            values = column(numbers["reviews"], name)
            assert row["mean"] == pytest.approx(np.mean(values))
            assert row["sd"] == pytest.approx(np.std(values, ddof=1))
            assert row["low"] < row["mean"] < row["high"]


def test_steps_are_stored_and_a_run_resumes_to_the_same_numbers(workspace, numbers, tmp_path):
    steps = sorted(path.name for path in (workspace.folder / "steps").iterdir())
    assert steps == ["synthetic-40-00000.json", "synthetic-40-00020.json", "synthetic-40-summary.json"]
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / steps[1]).write_bytes((workspace.folder / "steps" / steps[1]).read_bytes())
    seen = []
    again = AppendixB1().measure(
        replace(workspace, folder=tmp_path, progress=lambda done, goal: seen.append((done, goal)))
    )
    assert again == numbers
    assert seen == [(20, 40), (40, 40)]


def claims_of(numbers, origin="IMDB", n_reviews=25_000, **means):
    """Verdicts if the summary said otherwise."""
    about = {**numbers["about"][0], "origin": origin, "n_reviews": n_reviews}
    summary = []
    for row in numbers["summary"]:
        mean = means.get(f"{row['law']} {row['what']}".strip(), row["mean"])
        # The interval moves with its mean.
        ends = {name: row[name] and row[name] + mean - row["mean"] for name in ("low", "high")}
        summary.append({**row, "mean": mean, **ends})
    return AppendixB1().claims({**numbers, "about": [about], "summary": summary})


def test_verdicts_follow_the_numbers(numbers):
    def verdicts(**means):
        return [claim.verdict for claim in claims_of(numbers, **means)]

    assert verdicts(right=0.8005)[0] == "agrees"
    assert verdicts(right=0.79)[0] == "differs"
    (row,) = (row for row in numbers["summary"] if (row["law"], row["what"]) == ("delete", "printed"))
    within = PUBLISHED + 0.9 * (row["mean"] - row["low"])
    assert verdicts(**{"delete printed": within})[1] == "agrees"
    # Our value lies in the interval of the published mean, 0.808 ± 1.96 · 0.219 / √25,000.
    assert verdicts(**{"delete printed": PUBLISHED + 0.002})[1] == "agrees"
    # Within one published standard deviation, which is no agreement of two means.
    away = claims_of(numbers, **{"delete printed": PUBLISHED + 0.131 + row["high"] - row["low"]})[1]
    assert away.verdict == "differs"
    assert "does not lie in our 95 % confidence interval, nor ours in the published one" in away.why
    assert verdicts(**{"delete printed / length": 0.1})[3] == "agrees"
    assert verdicts(**{"delete printed / length": 0.5})[3] == "differs"
    assert verdicts(**{"replace exact / standard error": 1.02})[5] == "new"
    assert verdicts(**{"replace exact / standard error": 1.5})[5] == "differs"
    assert verdicts(**{"delete exact / standard error": 1.0})[6] == "differs"
    nearer = claims_of(numbers, **{"delete corrected": 0.0, "replace corrected": 0.0})[4]
    assert nearer.why.startswith("It is nearer")
    assert claims_of(numbers, **{"delete corrected": 9.0})[4].why.startswith("It is not nearer")


def test_what_is_published_of_the_test_set_is_not_claimed_of_less(numbers):
    synthetic = AppendixB1().claims(numbers)
    assert [synthetic[number].verdict for number in (0, 1, 3)] == ["not measured"] * 3
    assert claims_of(numbers, n_reviews=40)[0].verdict == "not measured"
    assert claims_of(numbers, n_reviews=40, **{"delete printed": PUBLISHED})[1].verdict == "agrees"
    assert f"{PUBLISHED} ± {SPREAD}" == synthetic[1].published
