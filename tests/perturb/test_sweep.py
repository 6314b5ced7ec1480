import numpy as np
import pytest

from heedful.effort import Effort, bytes_of
from heedful.errors import BadInput
from heedful.perturb.sweep import Interrupted, Sweep
from heedful.question import ask

TEXT = "good film good story"


def test_a_unit_s_tokens_go_together_and_cls_stays(tiny):
    sweep = Sweep(ask(tiny, [TEXT], "positive"), 0, "type", "delete")
    value = sweep(np.array([[False, True, True]]))
    assert np.allclose(value, tiny(["film story"])[0, 1], atol=1e-12)


def test_portions_change_nothing_and_equal_masks_are_asked_once(tiny):
    keep = np.random.default_rng(0).random((50, 4)) < 0.5
    seen = []
    few = Effort(memory=32 * 5 * 3, watch=lambda done, goal: seen.append((done, goal)))
    whole = Sweep(ask(tiny, [TEXT], "positive"), 0, "word", "replace")
    parts = Sweep(ask(tiny, [TEXT], "positive", effort=few), 0, "word", "replace")
    assert np.allclose(parts(keep), whole(keep), atol=1e-14)
    assert parts.asked == whole.asked == len(np.unique(keep, axis=0))
    assert seen[-1] == (parts.asked, parts.asked)
    assert seen[0] == (3, parts.asked)


def test_a_stopped_sweep_keeps_what_was_answered(tiny):
    def stop(done, _):
        if done >= 6:
            raise KeyboardInterrupt

    keep = np.random.default_rng(0).random((50, 4)) < 0.5
    whole = Sweep(ask(tiny, [TEXT], "positive"), 0, "word", "replace")(keep)
    sweep = Sweep(ask(tiny, [TEXT], "positive", effort=Effort(memory=32 * 5 * 3, watch=stop)), 0, "word", "replace")
    with pytest.raises(Interrupted) as stopped:
        sweep(keep)
    answered = stopped.value.answered
    assert 6 <= answered.sum() < 50
    assert np.allclose(stopped.value.values[answered], whole[answered], atol=1e-14)


@pytest.mark.parametrize(("size", "n_bytes"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5g", 1.5e9), (1000, 1000)])
def test_sizes_are_read_as_people_write_them(size, n_bytes):
    assert bytes_of(size) == n_bytes


@pytest.mark.parametrize("size", ["much", "-2GB", "0", ""])
def test_other_sizes_are_refused(size):
    with pytest.raises(BadInput, match="2GB"):
        bytes_of(size)
