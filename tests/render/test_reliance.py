import io

import numpy as np
import pytest
from rich.console import Console

import heedful
from heedful.errors import BadInput
from heedful.render.reliance import print_reliance, reliance_fragment, reliance_legend, reliance_page
from tests.families import build

CONTEXT, PROMPT = "an actor was <b>good . the plot was dull .", "the film was"


@pytest.fixture(scope="module")
def reliance():
    settings = {"n_null": 9, "alpha": 0.99, "chat": False, "progress": False}
    return heedful.context(build("gpt2"), CONTEXT, PROMPT, [40, 12, 7], method="leave-one-out", **settings)


def printed(reliance):
    stream = io.StringIO()
    print_reliance(reliance, Console(file=stream, width=160))
    return " ".join(stream.getvalue().split())


def test_the_terminal_has_the_numbers_of_every_token_and_the_cues_of_reliant_ones(reliance):
    text = printed(reliance)
    for place, row in enumerate(reliance.as_rows()):
        assert f"{row['p_cxmi']:+.3g} {row['kl']:.3g} {row['output_p_value']:.3g}" in text
        for unit, score, _ in reliance.cues.get(place, ()):
            assert f"{unit} {score:+.3g}" in text
    assert " ".join(reliance_legend(reliance).split()) in text


def test_the_page_marks_the_reliant_tokens_and_escapes_the_context(reliance):
    page = reliance_page(reliance)
    assert page.startswith("<!")
    assert "<b>good" not in page
    assert page.count("Relies on the context: P-CXMI") >= len(reliance.cues) > 0
    assert reliance_legend(reliance).split("(")[0] in page
    assert "Relies on the context" in reliance_fragment(reliance) == reliance._repr_html_()


def test_the_legend_counts_the_tokens_and_states_the_error_rate(reliance):
    legend = reliance_legend(reliance)
    assert f"{int(np.sum(reliance.reliant))} of 3 tokens" in legend
    assert "9 null contexts (sentences about other things)" in legend
    assert "would be at most 0.99" in legend


def test_a_result_is_written_by_its_ending(reliance, tmp_path):
    reliance.save(tmp_path / "a.html")
    assert "Relies on the context" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match=r"\.html or \.json"):
        reliance.save(tmp_path / "a.svg")
