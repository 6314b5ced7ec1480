import io

import numpy as np
from rich.console import Console

import heedful
from heedful.render.attribution_terminal import print_attribution
from tests.families import build

PROMPT = "the film was good"


def printed(table, width=100):
    stream = io.StringIO()
    print_attribution(table, Console(file=stream, width=width))
    return " ".join(stream.getvalue().split())


def test_every_part_has_its_strongest_source_with_its_interval():
    table = heedful.attribute(build("gpt2"), PROMPT, [40, 12, 7, 20], "leave-one-out")
    text = printed(table)
    assert table.text in text
    for number, name in enumerate(table.outputs):
        source, score = table.top(number, 1)[0]
        assert f"{number + 1} {name} {table.values[number]:+.4g} {source} {score:+.3g} exact" in text
    assert "A score is the drop of" in text


def test_of_many_parts_the_most_strongly_explained_are_shown_in_order():
    table = heedful.attribute(build("gpt2"), PROMPT, [40, 12, 7, 20] * 5, "gradient-x-input", earlier="fixed")
    text = printed(table)
    strongest = np.sort(np.argsort(-np.abs(table.scores).max(axis=1), kind="stable")[:12])
    places = [text.index(f" {number + 1} {table.outputs[number]} {table.values[number]:+.4g}") for number in strongest]
    assert places == sorted(places)
    assert "and 8 parts with weaker sources" in text


def test_show_prints_it(capsys):
    heedful.show(heedful.attribute(build("gpt2"), PROMPT, [40], "leave-one-out"))
    assert "strongest sources" in capsys.readouterr().out
