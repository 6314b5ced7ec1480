import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics.finite_bandwidth_figure import bandwidth_figure
from heedful.experiments.mathematics.mardaoui_garreau import DEFAULT, WIDE

FORMS = ("Eq. (17)", "Eq. (17), centred", "with the factor, centred", "with both")
NUMBERS = {
    "text": [{"unit": 3, "nu": nu, "theorem": 1 / nu} for nu in (1.0, DEFAULT, WIDE)],
    "drawn": [{"unit": 3, "nu": nu, "mean": 2.0, "low": 1.5, "high": 2.25} for nu in (0.5, 2.0)],
    "wide": [{"unit": 3, "word": "$5", "Eq. (17)": 0.7}],
    "samples": [{"n": n, "run": run, "distance": (run + 1) / n} for n in (512, 1024) for run in range(3)],
    "limits": [{"d": d, **{form: 10.0**-place for place, form in enumerate(FORMS)}} for d in (3, 4)],
}


@pytest.mark.slow
def test_every_panel_draws_its_numbers():
    words, samples, limits = bandwidth_figure(NUMBERS).axes
    assert words.lines[0].get_xydata().tolist() == [[DEFAULT, 1 / DEFAULT], [1.0, 1.0]]
    assert words.get_legend().get_texts()[0].get_text() == r"\$5"
    (drawn,) = (line for line in samples.lines if line.get_label() == "drawn LIME")
    assert drawn.get_ydata()[0] == pytest.approx(np.sqrt(np.mean([(run / 512) ** 2 for run in (1, 2, 3)])))
    assert {line.get_label(): line.get_ydata().tolist() for line in limits.lines} == {
        form: column(NUMBERS["limits"], form) for form in FORMS
    }
