import json
from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.datasets import Example
from heedful.document.rationale import Box
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.journal import Journal
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.lime import Lime
from heedful.explainers.random import Random
from heedful.metrics.removal import Deletion
from heedful.models.question import Question
from heedful.run_folder import RunFolder, unsealed
from tests.families import build, texts_for
from tests.metrics.linear import GOLD, Noisy, Truth, linear, texts

FEW = ["deletion", "insertion", "comprehensiveness", "sufficiency", "evidence-against"]
GOOD = ("awful", "boring", "brilliant", "dull", "excellent", "great", "perfect", "terrible", "waste", "wonderful")


@pytest.fixture(scope="module")
def report():
    methods = {"truth": Truth(), "noisy": Noisy(), "loo": LeaveOneOut()}
    return heedful.trust(linear(), texts(), methods, [*FEW, "gini", "gold-recall"], gold=GOLD, target=1)


def reviews(model, n_texts: int) -> list[str]:
    """Common words, with three of those that matter in each text."""
    rng = np.random.default_rng(0)
    common = [word for word in model.vocabulary.words[50:400] if word.isalpha()]
    return [" ".join(rng.permutation([*rng.choice(common, 25), *rng.choice(GOOD, 3)])) for _ in range(n_texts)]


@pytest.mark.slow
def test_the_true_scores_are_recommended(report):
    assert report.methods == ("truth", "noisy", "loo", "random")
    verdict = report.verdict("rank words")
    assert verdict.recommended in ("truth", "loo")
    # 30 texts cannot exclude that a rare text makes up for the small difference of the noisy copy.
    assert {"truth", "loo"} <= set(verdict.as_good) <= {"truth", "loo", "noisy"}
    assert report.verdict("find the evidence against").recommended in ("truth", "loo")
    assert report.verdict("find the known words").recommended in ("truth", "loo")


def test_every_mean_is_that_of_the_metric_by_hand(report):
    model, deletion = linear(), []
    for text in texts():
        words = text.split()
        weights = Truth().explain_batch(heedful.models.question.ask(model, [text], 1))[0].scores
        order = np.argsort(-np.abs(weights), kind="stable")
        gone = [np.abs(weights[order[:count]]).sum() for count in range(0, len(words) + 1, 2)]
        deletion.append(np.trapezoid(gone, dx=0.1))
    m, k = report.methods.index("truth"), report.metrics.index("deletion")
    assert np.allclose(report.values[m, k], deletion, rtol=1e-9)
    assert report.means[m, k] == pytest.approx(np.mean(deletion))
    low, high = report.intervals
    assert low[m, k] < report.means[m, k] < high[m, k]
    assert report.counts[m, k] == len(deletion)


def test_the_control_is_in_every_row_and_is_beaten(report):
    k = report.metrics.index("deletion")
    assert 0 < report.against_control[0, k] < 0.05
    assert report.against_control[report.methods.index("random"), k] == 1.0
    assert not np.isnan(report.means[-1]).any()


def test_metrics_share_the_values_on_masks(report):
    assert 0 < report.masks["asked"] < report.masks["wanted"]


def test_agreement_is_a_map(report):
    assert report.agreement[0, 2] == pytest.approx(1.0)
    assert abs(report.agreement[0, 3]) < 0.2
    assert np.allclose(report.agreement, report.agreement.T)


def test_a_report_is_plain_data(report):
    kept = json.loads(json.dumps(report.as_dict()))
    assert kept["verdicts"][0]["recommended"] in ("truth", "loo")
    assert len(kept["cells"]) == len(report.methods) * len(report.metrics)
    rows = list(report.rows())
    assert len(rows) == len(texts()) * len(report.methods) * len(report.metrics)
    assert {row["method"] for row in rows} == set(report.methods)


@pytest.mark.slow
def test_random_scores_alone_give_no_winner():
    report = heedful.trust(linear(), texts()[:12], {f"chance {seed}": Random(seed=seed) for seed in range(1, 9)}, FEW)
    assert [verdict.recommended for verdict in report.verdicts] == [None] * 3
    assert report.verdict("rank words").headline == "no significant winner"


@pytest.mark.slow
def test_the_recommended_method_finds_the_words_a_model_was_forced_to_use(paper):
    """The verdict is made without knowing them; its recall is within the interval of the best."""
    model = heedful.deaf(paper, GOOD)
    methods = ["attention-mean", "gradient-l2", "gradient-x-input", "lime-exact", "leave-one-out", "shapley-exact"]
    report = heedful.trust(model, reviews(paper, 25), methods, [*FEW, "gold-recall"], gold=GOOD)
    column = report.metrics.index("gold-recall")
    best = int(np.nanargmax(report.means[:, column]))
    recommended = report.verdict("rank words").recommended
    assert recommended is not None
    # The best may be right on every text; equal values have no interval.
    least = np.nan_to_num(report.intervals[0][best, column], nan=report.means[best, column])
    assert report.means[report.methods.index(recommended), column] >= least
    assert report.means[report.methods.index("random"), column] < 0.7


@pytest.mark.slow
def test_a_deaf_transformer_is_measured_by_the_words_it_reads():
    left = ("good", "bad", "dull", "bright")
    rng = np.random.default_rng(0)
    others = ("the", "film", "was", "very", "not", "story", "a", "an", "and", "but", "plot", "actor")
    given = [" ".join(rng.permutation([*rng.choice(others, 12), *rng.choice(left, 2)])) for _ in range(14)]
    methods = ["attention-mean", "gradient-x-input", "leave-one-out"]
    report = heedful.trust(
        heedful.deaf(build("bert"), left), given, methods, ["gold-recall", "gold-precision"], gold=left
    )
    column = report.metrics.index("gold-precision")
    best = int(np.nanargmax(report.means[:, column]))
    recommended = report.verdict("find the known words").recommended
    assert recommended is not None
    # The best may be right on every text; equal values have no interval.
    least = np.nan_to_num(report.intervals[0][best, column], nan=report.means[best, column])
    assert report.means[report.methods.index(recommended), column] >= least
    assert report.means[report.methods.index("leave-one-out"), column] == 1.0


@pytest.mark.slow
def test_the_exact_values_have_no_variance_and_a_deletion_curve_as_good_as_sampled_ones(paper):
    report = heedful.trust(
        paper, reviews(paper, 12), ["lime", "lime-exact"], ["deletion", "consistency"], n_samples=500
    )
    sampled, exact = report.means[report.methods.index("lime")], report.means[report.methods.index("lime-exact")]
    assert exact[1] == 0.0 < sampled[1]
    assert exact[0] >= sampled[0] - 1e-9


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_report(tmp_path):
    model, few, methods = linear(), texts()[:6], ["leave-one-out", "lime"]
    seen = []

    def stop(done, _):
        seen.append(done)
        if done == 3:
            raise RuntimeError("the machine is gone")

    with pytest.raises(RuntimeError):
        heedful.trust(model, few, methods, FEW, out=tmp_path, progress=stop)
    with (tmp_path / "documents.jsonl").open("a") as file:
        file.write('{"place": 3, "tex')
    assert len(Journal(tmp_path, unsealed((tmp_path / "settings.json").read_text())).done) == 3
    resumed = heedful.trust(model, few, methods, FEW, out=tmp_path)
    whole = heedful.trust(model, few, methods, FEW)
    assert resumed.as_dict() == whole.as_dict()


MARKED = [Example(text, 1, ((0, 2),)) for text in texts()[:2]]
OTHER = {
    "metrics": {"metrics": ["entropy"]},
    "methods": {"methods": ["lime"]},
    "texts": {"dataset": [Example(text, 1, ((0, 2),)) for text in texts()[2:4]]},
    "labels and rationales": {"dataset": [Example(text, 1, ((0, 5),)) for text in texts()[:2]]},
    "labels": {"dataset": [Example(text, 0, ((0, 2),)) for text in texts()[:2]]},
    "gold": {"gold": ["w1"]},
    "target": {"target": 0},
    "half": {"half": True},
    "twin": {"twin": linear(2.0)},
    "others": {"others": [heedful.read(linear(), texts()[0], [1.0] * 20, name="theirs", target=1)]},
}


def test_a_second_run_at_the_same_time_does_not_use_the_folder(tiny, tmp_path):
    texts = ["the film was good", "a bad story"]
    with RunFolder(tmp_path).alone(), pytest.raises(BadInput, match="Another run works in"):
        heedful.trust(tiny, texts, ["leave-one-out"], ["comprehensiveness"], out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    heedful.trust(tiny, texts, ["leave-one-out"], ["comprehensiveness"], out=tmp_path)
    assert len((tmp_path / "documents.jsonl").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("what", OTHER)
def test_another_run_does_not_use_the_folder(tmp_path, what):
    usual = {"dataset": MARKED, "methods": ["leave-one-out"], "metrics": ["gini"], "target": 1, "out": tmp_path}
    heedful.trust(linear(), **usual)
    with pytest.raises(BadInput, match=f"differs in .*{what}"):
        heedful.trust(linear(), **{**usual, **OTHER[what]})


def test_another_function_does_not_use_the_folder(tmp_path):
    good, bad = (
        heedful.wrap(lambda given, word=word: [[0.0, float(word in t)] for t in given]) for word in ("good", "bad")
    )
    heedful.trust(good, ["a good film", "a bad film"], ["leave-one-out"], ["gini"], out=tmp_path)
    with pytest.raises(BadInput, match="differs in outputs"):
        heedful.trust(bad, ["a good film", "a bad film"], ["leave-one-out"], ["gini"], out=tmp_path)


def test_a_broken_journal_is_refused_with_a_message(tmp_path):
    heedful.trust(linear(), texts()[:2], ["leave-one-out"], ["gini"], out=tmp_path)
    (tmp_path / "documents.jsonl").write_text("nonsense\n")
    with pytest.raises(BadInput, match="Line 1"):
        heedful.trust(linear(), texts()[:2], ["leave-one-out"], ["gini"], out=tmp_path)


def test_stopping_gives_the_report_of_what_was_measured():
    def stop(done, _):
        if done == 4:
            raise KeyboardInterrupt

    report = heedful.trust(linear(), texts(), ["leave-one-out"], ["gini"], progress=stop)
    assert len(report.documents) == 4
    assert any("after 4 of 30" in note and note.kind == "stopped" for note in report.notes)


def test_a_text_on_which_a_model_fails_does_not_end_the_run(tiny, monkeypatch):
    real = type(tiny).masked

    def failing(self, document, *given, **named):
        if "plot" in document.text:
            raise IndexError("index out of range in self")
        return real(self, document, *given, **named)

    monkeypatch.setattr(type(tiny), "masked", failing)
    report = heedful.trust(tiny, ["good film", "bad plot", "dull story"], ["leave-one-out"], ["gini"])
    assert len(report.documents) == 2
    assert any("IndexError: index out of range" in reason for _, _, reason, _ in report.skipped)


@pytest.mark.slow
def test_a_note_says_that_there_are_too_few_texts():
    few = heedful.trust(linear(), texts()[:3], ["leave-one-out"], FEW)
    assert any("fewer than" in note for note in few.notes)
    assert not any("fewer than" in note for note in heedful.trust(linear(), texts(), ["leave-one-out"], FEW).notes)


def test_negative_labels_are_none():
    report = heedful.trust(linear(), [(text, -1) for text in texts()[:3]], ["leave-one-out"], ["gini"])
    assert report.accuracy is None


def test_texts_that_cannot_be_explained_are_named(tiny):
    report = heedful.trust(tiny, ["good film", "", "bad story", "xyzzy"], ["leave-one-out"], ["gini"])
    assert len(report.documents) == 2
    why = [reason for _, _, reason, _ in report.skipped]
    assert any("no word" in reason for reason in why)
    assert any("are unknown" in reason for reason in why)
    with pytest.raises(BadInput, match="No text could be measured"):
        heedful.trust(tiny, ["", " "], ["leave-one-out"], ["gini"])


def test_methods_that_do_not_fit_a_model_have_a_reason_and_the_rest_is_measured():
    black = heedful.wrap(lambda given: [[0.0, float("good" in text)] for text in given])
    report = heedful.trust(
        black, ["a good film", "good and bad"], ["attention-mean", "leave-one-out"], ["gini", "lipschitz"]
    )
    why = {(method, metric): reason for method, metric, reason, _ in report.skipped}
    assert "needs attention" in why["attention-mean", ""]
    assert "gradients" in why["leave-one-out", "lipschitz"]
    assert not np.isnan(report.means[report.methods.index("leave-one-out"), 0])


def test_rationales_that_do_not_fit_have_a_reason(tiny):
    marked = [Example("good film", 1, ((0, 4),)), Example("bad story", 0, ((40, 50),))]
    report = heedful.trust(tiny, marked, ["leave-one-out"], ["auprc", "gini"])
    assert report.counts[0, 0] == 1
    assert any("does not fit" in reason for _, metric, reason, _ in report.skipped if metric == "auprc")


def test_imported_explanations_are_included():
    model = linear()
    read = [replace(heedful.explain(model, text, "leave-one-out", target=1), method="theirs") for text in texts()[:10]]
    report = heedful.trust(model, texts()[:12], ["random"], FEW, others=read, target=1)
    assert report.methods == ("theirs", "random")
    assert np.isnan(report.passes[0])
    assert report.verdict("rank words").standings[0].passes is None
    assert "theirs" not in [standing.method for verdict in report.verdicts[2:] for standing in verdict.standings]
    assert json.loads(json.dumps(report.as_dict(), allow_nan=False))["passes"]["theirs"] is None
    assert report.counts[0, 0] == 10
    assert any("imported" in reason for method, _, reason, _ in report.skipped if method == "theirs")
    with pytest.raises(BadInput, match="is the name of a method"):
        heedful.trust(model, texts()[:3], others=[replace(read[0], method="lime")], metrics=["gini"])


def test_settings_reach_methods_and_metrics():
    report = heedful.trust(linear(), texts()[:3], ["lime"], ["deletion"], n_samples=77, n_steps=5, absence="delete")
    assert report.settings["lime"]["n_samples"] == 77
    assert report.settings["lime"]["absence"] == "delete"
    assert dict(report.columns[0].settings)["n_steps"] == 5
    own = heedful.trust(linear(), texts()[:3], {"few": Lime(n_samples=50)}, [Deletion(n_steps=3)])
    assert own.settings["few"]["n_samples"] == 50
    assert report.settings["lime"]["unit"] == "word"


def test_a_method_by_another_unit_is_left_out(tiny):
    report = heedful.trust(
        tiny, ["good film", "bad story"], {"words": LeaveOneOut(), "types": LeaveOneOut(unit="type")}, ["gini"]
    )
    assert report.counts[:, 0].tolist() == [2, 0, 2]
    assert any("Its unit is type; the unit of the report is word" in reason for _, _, reason, _ in report.skipped)


@pytest.mark.slow
def test_sampling_that_is_stopped_ends_the_run_and_is_not_kept(tiny, monkeypatch):
    """Ctrl-C inside a sampler gives a cut-short explanation elsewhere; here it would pass for a whole one."""
    real, calls = Question.masked, []

    def stopped(self, *args, **named):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return real(self, *args, **named)

    monkeypatch.setattr(Question, "masked", stopped)
    words = ["good", "film", "was", "very", "bad", "but", "bright", "and", "not", "dull", "story", "a", "plot"]
    given = [" ".join(np.random.default_rng(seed).permutation(words)) for seed in range(8)]
    report = heedful.trust(tiny, given, ["lime"], ["deletion"], n_samples=60)
    assert len(report.documents) < 8
    assert any("Stopped by the user" in note for note in report.notes)
    whole = heedful.trust(tiny, given, ["lime"], ["deletion"], n_samples=60)
    n = len(report.documents)
    assert np.array_equal(report.values, whole.values[:, :, :n])


def test_nonsense_is_refused(tiny):
    two = ["good film", "bad story"]
    with pytest.raises(BadInput, match="control of every report"):
        heedful.trust(tiny, two, {"random": "leave-one-out", "x": "random"}, ["gini"])
    with pytest.raises(BadInput, match="given twice"):
        heedful.trust(tiny, two, [Lime(n_samples=50), Lime(n_samples=60)])
    with pytest.raises(BadInput, match="given 2 times"):
        heedful.trust(tiny, two, ["lime"], [Deletion(n_steps=3), Deletion()])
    with pytest.raises(UnknownName, match="lime"):
        heedful.trust(tiny, two, ["limes"])
    with pytest.raises(UnknownName, match="deletion"):
        heedful.trust(tiny, two, ["lime"], ["deletions"])
    with pytest.raises(UnknownName, match="n_samples"):
        heedful.trust(tiny, two, ["lime"], ["gini"], n_sample=3)
    with pytest.raises(BadInput, match="gold is empty"):
        heedful.trust(tiny, two, ["lime"], ["gini"], gold=[])
    with pytest.raises(BadInput, match="No metric"):
        heedful.trust(tiny, two, ["lime"], [])
    with pytest.raises(BadInput, match="There is no class 7"):
        heedful.trust(tiny, two, ["lime"], ["gini"], target=7)


def test_boxes_in_pictures_are_compared_with_patches():
    model = build("vit")
    pictures = texts_for("vit")[:2]
    halves = [Box(0, 0, 16, 32, 32, 32), Box(16, 0, 32, 32, 32, 32)]
    given = [Example(picture, 0, half) for picture, half in zip(pictures, halves, strict=True)]
    report = heedful.trust(model, given, ["leave-one-out"], ["iou", "auprc"], target=0)
    for number, picture in enumerate(pictures):
        scores = np.abs(heedful.explain(model, picture, "leave-one-out", target=0).scores)
        rows, columns = model.encode(picture).picture.grid
        left = np.tile(np.arange(columns) < columns / 2, rows)
        inside = left if number == 0 else ~left
        named = np.zeros(len(scores), dtype=bool)
        named[np.argsort(-scores)[: inside.sum()]] = True
        assert report.values[0, 0, number] == pytest.approx((named & inside).sum() / (named | inside).sum())


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
def test_every_family_can_be_measured(family):
    model = build(family)
    given = list(texts_for(family))[:2]
    methods = ["attention-mean", "gradient-x-input", "leave-one-out"]
    report = heedful.trust(model, given, methods, ["deletion", "monotonicity", "gini"])
    assert not np.isnan(report.means[:, 0]).any()


def test_a_model_deaf_to_every_word_has_no_winner(paper):
    """Differences of 1e-16 made leave-one-out win: it ranks the same rounding by which it is measured."""
    deaf = heedful.deaf(paper, ["zebra", "quagmire"])
    report = heedful.trust(deaf, reviews(paper, 14), ["leave-one-out", "attention-mean", "gradient-x-input"], FEW)
    assert report.verdicts
    assert all(verdict.recommended is None for verdict in report.verdicts)
    assert any(note.kind == "uninformative" for note in report.notes)
    assert (np.abs(report.against_control) == 1).all()


def test_two_explanations_of_one_text_under_one_name_are_refused(tiny):
    text = "good film , not dull"
    one, other = (heedful.read(tiny, text, np.arange(5.0) * sign, name="theirs", target=1) for sign in (1, -1))
    with pytest.raises(BadInput, match=r"'theirs \(read\)' has two different explanations of 'good film , not dull'"):
        heedful.trust(tiny, [text, "bad story"], ["leave-one-out"], ["gini"], others=[one, other], target=1)
    # The same scores twice, and scores of another class, are no contradiction.
    third = heedful.read(tiny, text, np.arange(5.0), name="theirs", target=0)
    report = heedful.trust(tiny, [text, "bad story"], ["leave-one-out"], ["gini"], others=[third, one, one], target=1)
    assert report.documents[0].scores["theirs (read)"] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_seed_is_that_of_sampled_methods_and_of_the_control(tiny):
    texts = ["a very good film , not dull", "the plot was bad but the actor bright"]
    values = [
        heedful.trust(tiny, texts, ["lime"], ["gini"], seed=seed, n_samples=20).values[:, 0] for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0] != values[2]).all()
    alone = heedful.explain(tiny, texts[0], "lime", seed=1, n_samples=20)
    other = heedful.explain(tiny, texts[0], "lime", seed=0, n_samples=20)
    assert not np.array_equal(alone.scores, other.scores)
