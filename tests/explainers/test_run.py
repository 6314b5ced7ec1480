from dataclasses import replace

from heedful.explainers import configure
from heedful.explainers.run import run_explainer, with_default_unit, with_probes
from heedful.models.question import ask


def test_a_run_is_timed_and_its_probes_are_counted(tiny):
    question = ask(tiny, ["good film", "a dull plot"])
    first, second = run_explainer(configure("gradient-l1", {}), question)
    assert first.facts["seconds"] == second.facts["seconds"] > 0
    assert with_probes(first, 3).facts["forwards"] == first.facts["forwards"] + 3
    masked = replace(first, facts={"masks": 5})
    assert with_probes(masked, 2).facts == {"masks": 7}
    assert with_probes(first, 0) is first


def test_words_stay_the_units_of_a_text(tiny):
    explainer = configure("lime", {})
    assert with_default_unit(explainer, ask(tiny, ["good film"])) is explainer
