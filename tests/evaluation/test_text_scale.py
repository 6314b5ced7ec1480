import numpy as np
import pytest

import heedful
from heedful.evaluation.text_scale import TextScale, value_ends
from heedful.metrics import Evaluation
from heedful.metrics.gold import GoldRecall
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
