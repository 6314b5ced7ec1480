import numpy as np
import pytest

import heedful
from heedful.evaluation.text_scale import TextScale, ceiling_notes, value_ends
from heedful.metrics import Evaluation, measure
from heedful.metrics.gold import GoldRecall
from heedful.metrics.linear_datamodelling import LinearDatamodelling
from heedful.metrics.removal import Comprehensiveness, Deletion, EvidenceAgainst, Sufficiency
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues

TEXT = "good film , not dull and never bad"


def evaluation(model, method):
    question = ask(model, [TEXT], 1)
    return Evaluation(question, heedful.explain(model, TEXT, method, target=1), DocumentValues(question, "word"))


@pytest.mark.parametrize("metric", [Deletion(), Comprehensiveness(), Sufficiency(), EvidenceAgainst()])
def test_ends_are_the_reach_of_the_output_and_the_same_for_every_method(tiny, metric):
    words = TEXT.split()
    outputs = tiny([TEXT, *(" ".join([*words[:n], "[UNK]", *words[n + 1 :]]) for n in range(len(words)))])[:, 1]
    helps = outputs[0] - outputs[1:] > 0
    without = [" ".join(np.where(side, "[UNK]", words).tolist()) for side in (helps, ~helps)]
    lost = np.abs(outputs[0] - tiny(without)[:, 1]).sum()
    alone = tiny([*without[::-1], " ".join(["[UNK]"] * len(words))])[:, 1]
    gained = np.abs(alone[:2] - alone[2]).sum()
    reach = max(lost, gained)
    expected = {"deletion": (0, reach), "comprehensiveness": (0, reach), "sufficiency": (reach, 0)}
    own = [value_ends(metric, evaluation(tiny, method)) for method in ("leave-one-out", "random", "gradient-x-input")]
    assert own[0] == own[1] == own[2]
    assert own[0] == pytest.approx(expected.get(metric.name, (-reach, reach)), rel=1e-6)


def test_metrics_with_bounds_have_no_ends(tiny):
    assert value_ends(GoldRecall(), evaluation(tiny, "random")) is None


def test_scores_are_between_the_ends_and_a_half_where_these_are_rounding():
    scale = TextScale.of([True, False], [[(0.0, 4.0), (0.0, 1e-7)], [(2.0, 0.0), None]], [3.0, 3.0])
    values = np.array([[[1.0, 5e-8], [0.5, 0.25]], [[6.0, 0.0], [np.nan, 1.0]]])
    scores = scale.scores(values)
    assert scores[0].tolist() == [[0.25, 0.5], [0.75, 0.75]]
    assert scores[1, 0].tolist() == [1.5, 0.5]
    assert np.isnan(scores[1, 1, 0])
    assert scale.is_flat.tolist() == [[False, True], [False, False]]
    assert scale.score_ties[0, 0] == pytest.approx(3e-6 / 4)


def test_bounded_metrics_are_scaled_by_their_bounds_or_by_the_ceiling_where_it_is_known():
    bounds = [(-1.0, 1.0), (0.0, np.inf)]
    scale = TextScale.of([True, True], [[None, (-1.0, 0.6)], [(0.0, 4.0), (0.0, 4.0)]], [1e9, 1e9], bounds)
    values = np.array([[[0.0, 0.6], [1.0, 1.0]]])
    assert scale.scores(values)[0, 0].tolist() == [0.5, 1.0]
    # The size of the output says nothing about rounding of a correlation.
    assert scale.tie[0].max() < 1e-6 < scale.tie[1].min()


def test_a_ceiling_that_is_known_is_an_end_and_a_note(tiny):
    own = evaluation(tiny, "leave-one-out")
    assert value_ends(LinearDatamodelling(), own) is None
    low, ceiling = value_ends(LinearDatamodelling(n_masks=256), own)
    assert low == -1
    assert measure(LinearDatamodelling(n_masks=256), own) <= ceiling + 1e-3 <= 1 + 1e-3
    metrics = [LinearDatamodelling(n_masks=256)]
    texts = [TEXT, "a film", "very dull"]
    report = heedful.trust(tiny, texts, ["leave-one-out"], metrics, target=1, progress=None)
    known = [document.ends["linear-datamodelling"][1] for document in report.documents]
    assert known[0] == pytest.approx(ceiling)
    start = f"linear-datamodelling: no scores have much more than {np.mean(known):.2f}"
    assert any(str(note).startswith(start) for note in report.notes)
    assert [verdict.use for verdict in report.verdicts] == ["find the sources of the output"]
    assert ceiling_notes([]) == []
