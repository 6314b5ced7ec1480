from itertools import product

import numpy as np
import pytest
from scipy.stats import spearmanr

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.metrics import measure
from heedful.metrics.linear_datamodelling import LinearDatamodelling, every_mask, linear_ceiling
from heedful.perturb.masks import generator
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, sets_of, value

TEXT = "good film was not bad but very dull and a bright story ?"
SCORES = np.random.default_rng(0).standard_normal(13)


@pytest.mark.parametrize(("absence", "hole"), [("replace", "neverseen"), ("delete", None)])
def test_it_is_scipy_s_correlation_over_the_masks(tiny, absence, hole):
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    score = measure(LinearDatamodelling(absence=absence, n_masks=40), evaluation)
    removed = sets_of(evaluation, absence)
    assert len(removed) == 40
    kept = [set(range(13)) - gone for gone in removed]
    sums = [sum(SCORES[list(keep)]) for keep in kept]
    outputs = [value(tiny, masked_text(TEXT, keep, hole)) for keep in kept]
    assert score == pytest.approx(spearmanr(sums, outputs).statistic, abs=1e-9)


def test_masks_keep_every_unit_with_the_given_probability():
    for keep in (0.5, 0.2):
        evaluation = evaluation_of(linear(), " ".join(f"w{number}" for number in range(40)), np.arange(40.0))
        measure(LinearDatamodelling(n_masks=2_000, keep=keep), evaluation)
        removed = sets_of(evaluation, "replace")
        shares = np.bincount(np.concatenate([list(gone) for gone in removed]), minlength=40) / len(removed)
        assert np.abs(shares - (1 - keep)).max() < 5 * (keep * (1 - keep) / 2_000) ** 0.5


def test_all_methods_meet_the_same_masks_which_are_not_those_of_the_seed(tiny):
    one, other, seeded = (evaluation_of(tiny, TEXT, scores) for scores in (SCORES, SCORES[::-1], SCORES))
    for evaluation, seed in ((one, 0), (other, 0), (seeded, 1)):
        measure(LinearDatamodelling(seed=seed), evaluation)
    assert sets_of(one, "replace") == sets_of(other, "replace") != sets_of(seeded, "replace")
    drawn = generator(0, one.explanation.document).random((64, 13)) < 0.5
    assert not {frozenset(np.flatnonzero(~row)) for row in drawn} & set(map(frozenset, sets_of(one, "replace")))


def test_of_few_units_every_mask_is_evaluated_once(tiny):
    evaluation = evaluation_of(tiny, "not a bad film", [1.0, 0.5, -2.0, 0.1])
    score = measure(LinearDatamodelling(n_masks=16), evaluation)
    kept = [{place for place, bit in enumerate(bits) if bit} for bits in product((0, 1), repeat=4)]
    outputs = [value(tiny, masked_text("not a bad film", keep, "neverseen")) for keep in kept]
    sums = [sum(evaluation.scores[list(keep)]) for keep in kept]
    assert score == pytest.approx(spearmanr(sums, outputs).statistic, abs=1e-9)
    assert LinearDatamodelling(n_masks=15).ceiling(evaluation) is None
    assert LinearDatamodelling(n_masks=16, keep=0.4).ceiling(evaluation) is None


def test_the_ceiling_is_that_of_least_squares_on_the_ranks_and_no_other_scores_have_more():
    rng = np.random.default_rng(0)
    for n_units in (4, 6, 8):
        keep = np.array(list(product((0, 1), repeat=n_units)))[:, ::-1]
        assert np.array_equal(every_mask(n_units), keep == 1)
        weights, pairs = rng.standard_normal(n_units), rng.standard_normal((n_units, n_units)) / 2
        for outputs in (
            keep @ weights + np.einsum("mi,ij,mj->m", keep, pairs, keep),
            -np.logaddexp(0, 2 - 2 * keep @ np.abs(weights)) + keep[:, 0] * keep[:, 1],
        ):
            ceiling = linear_ceiling(outputs)
            design = np.column_stack([np.ones(2**n_units), keep])
            ranks = np.argsort(np.argsort(outputs))
            line = np.linalg.lstsq(design, ranks, rcond=None)[0][1:]
            assert ceiling == pytest.approx(spearmanr((keep @ line).round(9), outputs).statistic, abs=1e-9)
            others = line + rng.standard_normal((300, n_units)) * np.abs(line).mean() * rng.random((300, 1)) / 3
            assert max(spearmanr(keep @ other, outputs).statistic for other in others) < ceiling + 2e-3
            plain = np.linalg.lstsq(design, outputs, rcond=None)[0][1:]
            assert spearmanr(keep @ plain, outputs).statistic < ceiling + 2e-3


def test_true_scores_of_a_sum_are_perfect_and_their_opposites_the_worst():
    text, weights = "w0 w20 w1 w9 w8", np.array([1 / 2, 0, -7 / 9, -3, 49 / 18])
    for n_masks in (31, 32):
        metric = LinearDatamodelling(n_masks=n_masks)
        assert measure(metric, evaluation_of(linear(), text, 5 * weights)) == pytest.approx(1)
        assert measure(metric, evaluation_of(linear(), text, -weights)) == pytest.approx(-1)
        # Scores that rank no mask.
        assert measure(metric, evaluation_of(linear(), text, np.zeros(5))) == 0
    assert LinearDatamodelling(n_masks=32).ceiling(evaluation_of(linear(), text, weights)) == pytest.approx(1)


def test_what_has_no_score_is_refused_in_a_sentence(tiny):
    with pytest.raises(Unsupported, match=r"^linear-datamodelling needs at least 2 units; the text has 1\.$"):
        measure(LinearDatamodelling(), evaluation_of(tiny, "dull", [1.0]))
    with pytest.raises(Unsupported, match=r"^linear-datamodelling is undefined: no mask changes the output\.$"):
        measure(LinearDatamodelling(), evaluation_of(linear(), "w30 w31 w32", [1.0, -2.0, 3.0]))
    with pytest.raises(Unsupported, match=r"^linear-datamodelling: this metric needs signed scores"):
        measure(LinearDatamodelling(), evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False))
    with pytest.raises(BadInput, match=r"^linear-datamodelling needs n_masks ≥ 4; 3 was given\.$"):
        LinearDatamodelling(n_masks=3)
    with pytest.raises(BadInput, match=r"^linear-datamodelling needs 0 < keep < 1; 1\.0 was given\.$"):
        LinearDatamodelling(keep=1.0)
    with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
        LinearDatamodelling(absence="vanish")
