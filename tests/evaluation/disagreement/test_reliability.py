import numpy as np

from heedful.evaluation.disagreement import explain_disagreement
from heedful.evaluation.disagreement.evidence import Passed
from heedful.evaluation.disagreement.reliability import EXPECTED, Reliability, reliability
from heedful.models.transformer import Transformer
from tests.evaluation.disagreement.planted import asked, planted


def test_counts_are_those_of_a_planted_layer():
    # Four units of equal attention: against, for, nothing at all, for.
    contribution = np.array([-1.0, 1.0, 0.001, 1.0])
    passed = Passed(np.full(4, 0.25), np.abs(contribution), contribution, contribution, np.ones(4))
    losses = {"replace": np.array([-0.9, 0.8, 0.9, -0.1])}
    tests = {test.cause: test for test in reliability(passed, losses)}
    assert set(tests) == set(EXPECTED)
    assert tests["sign lost"] == Reliability("sign lost", "replace", 1, 1, 1, 3)
    # At fair value the third unit's attention is worth 0.75, and it costs more than half of that.
    assert tests["value killed"] == Reliability("value killed", "replace", 0, 1, 1, 3)
    assert tests["heads cancel"] == Reliability("heads cancel", "replace", 0, 0, 1, 3)
    assert str(tests["sign lost"]) == "sign lost: 1 of 1 behaved as predicted when replaced, 1 of 3 others"


def test_a_planted_word_behaves_as_its_diagnosis_says():
    words = {"good": ([0.0], [1.0]), "fine": ([0.0], [0.8]), "bad": ([1.0], [-1.0])}
    model = Transformer.of(planted(words, T_max=4))
    question, explanations = asked(model, "good fine bad", ["attention-mean", "leave-one-out"])
    disagreement = explain_disagreement(question, explanations)
    (test,) = [test for test in disagreement.reliability if test.cause == "sign lost"]
    assert (test.behaved, test.diagnosed) == (1, 1)
    assert explain_disagreement(*asked(planted(words, T_max=4), "good fine bad")).reliability == ()
