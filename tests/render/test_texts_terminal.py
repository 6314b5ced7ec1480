import io
from dataclasses import replace

import pytest
from rich.console import Console

from heedful.explanations import Explanations
from heedful.render import show
from heedful.render.texts_terminal import print_texts
from tests.explanations.many import explained


def printed(explanations, width=100):
    console = Console(file=io.StringIO(), width=width)
    print_texts(explanations, console)
    return console.file.getvalue()


def test_words_and_worst_mistakes_are_shown():
    text = printed(explained())
    for row in explained().global_words().head(3).itertuples():
        assert f"{row.word} " in text
        assert f"{row.mean:+.2g}" in text
    for name in explained().errors().ids[:3]:
        assert any(line.startswith(f"{name}: ") and "(predicted" in line for line in text.splitlines())


@pytest.mark.parametrize("width", [40, 80, 160])
def test_forty_lines_are_enough(width):
    items = explained().items[:-1] * 40
    targets = [replace(item.target, name=f"class {number % 5}") for number, item in enumerate(items)]
    many = tuple(replace(item, target=target) for item, target in zip(items, targets, strict=True))
    ids, classes = tuple(map(str, range(len(many)))), explained().classes
    text = printed(
        Explanations(many, ids, classes, (0,) * len(many), (1,) * len(many), len(many), (None,) * len(many)), width
    )
    assert len(text.splitlines()) <= 40
    assert "2 other targets" in text


def test_control_characters_and_line_breaks_are_not_printed():
    one = explained()[0]
    document = replace(one.document, text="The\x1b[31m\nfilm was good, very good!")
    hostile = Explanations((replace(one, document=document),), ("a\x07[bold]",), ("x", "y"), (0,), (1,), 1, (None,))
    text = printed(hostile)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]" in text


def test_show_prints_them(capsys):
    show(explained())
    assert "The worst mistakes" in capsys.readouterr().out
