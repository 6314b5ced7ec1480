import numpy as np

from heedful.perturb import sweep as module
from heedful.perturb.sweep import sweep
from heedful.target import Target


def test_a_unit_s_tokens_go_together_and_cls_stays(tiny):
    document = tiny.encode("good film good story")
    target = Target(1, "positive")
    value = sweep(tiny, document, target, "type", np.array([[False, True, True]]), "delete")
    assert np.allclose(value, tiny(["film story"])[0, 1], atol=1e-12)


def test_portions_change_nothing(tiny, monkeypatch):
    document = tiny.encode("good film good story")
    keep = np.random.default_rng(0).random((50, 4)) < 0.5
    whole = sweep(tiny, document, Target(1, "positive"), "word", keep, "replace")
    monkeypatch.setattr(module, "_CELLS", 20)
    assert np.allclose(sweep(tiny, document, Target(1, "positive"), "word", keep, "replace"), whole, atol=1e-14)
