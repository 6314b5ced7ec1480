from heedful.evaluation.probes.published import AGREEMENT, BAG, N_TRAIN, UNIFORM
from heedful.experiments.debate.corpora import CORPORA


def test_published_numbers_belong_to_corpora_and_are_correlations_or_shares():
    assert {corpus for corpus, _ in AGREEMENT} == N_TRAIN.keys() <= CORPORA.keys()
    assert BAG.keys() <= UNIFORM.keys() <= CORPORA.keys()
    assert all(-1 < tau < 1 for pairs in AGREEMENT.values() for tau in pairs.values())
    assert all(0.5 < share < 1 for row in UNIFORM.values() for share in row)
