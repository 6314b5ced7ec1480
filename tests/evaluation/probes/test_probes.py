import pytest

from heedful.evaluation.probe import probes
from heedful.evaluation.probes import Finding, Probe
from heedful.statistics.quantity import Quantity


def test_a_finding_may_have_no_null_and_no_published_number():
    finding = Finding("what", Quantity(0.5))
    assert (finding.null, finding.null_is, finding.published) == (None, "", "")


def test_a_probe_must_measure():
    with pytest.raises(TypeError, match="measure"):
        Probe()


def test_probes_that_train_say_so():
    assert {name for name, kind in probes().items() if kind.trains} >= {
        "uniform-and-frozen",
        "trained-adversary",
        "deceived",
    }
