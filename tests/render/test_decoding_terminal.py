import io

from rich.console import Console

import heedful
from heedful.render.decoding_terminal import print_generation
from tests.families import build

PROMPT = "the film was good"


def printed(generation):
    console = Console(file=io.StringIO(), width=120)
    print_generation(generation, console)
    return console.file.getvalue()


def test_every_token_has_a_line_with_its_probability_and_the_kept_set():
    generation = heedful.generate(build("gpt2"), PROMPT, "nucleus", p=0.5, max_new=6)
    lines = [
        line.split() for line in printed(generation).splitlines() if line.split()[:1] and line.split()[0].isdigit()
    ]
    assert len(lines) == len(generation.steps)
    for number, (line, step) in enumerate(zip(lines, generation.steps, strict=True), start=1):
        assert line[0] == str(number)
        assert str(step.n_kept) in line
        assert f"{step.mass:.2f}" in line


def test_it_says_how_it_ended_and_what_a_beam_search_pruned():
    text = printed(heedful.generate(build("gpt2"), PROMPT, "beam", max_new=3))
    assert "Ended by length" in text
    assert "were pruned" in text


def test_a_long_text_is_cut_and_a_note_is_printed(monkeypatch):
    model = build("gpt2")
    monkeypatch.setattr(model, "end_ids", frozenset())
    text = printed(heedful.generate(model, PROMPT, max_new=100))
    assert "more tokens; the JSON has all" in text
    assert "Note: Only" in text
