"""The command `heedful heads`: what each attention head attends to."""

import json
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from heedful.cli.input import input_and_settings, load_model, one_text, read_texts
from heedful.cli.options import DeviceOption, FileOption, JsonOption, ModelOption, RowOption, SecondOption, Words
from heedful.errors import BadInput, unknown_name

CorpusOption = Annotated[
    Path | None,
    typer.Option("--corpus", help="Average the scores over the texts of this file: one per line, or a table."),
]
LayerOption = Annotated[
    int, typer.Option("--layer", help="With --out FILE.svg, .png or --numbers: the layer, from 0; -1 is the last.")
]
HeadOption = Annotated[
    int | None, typer.Option("--head", help="With --out FILE.svg, .png or --numbers: the head, from 0; default: mean.")
]
NumbersOption = Annotated[
    bool, typer.Option("--numbers", help="Show one map with its numbers; --out draws it: .png, .svg or .pdf.")
]
MapsOption = Annotated[
    Path | None, typer.Option("--out", help="Draw the maps of the text: all in an .html, one in an .svg or .png.")
]
MapUnitOption = Annotated[
    str, typer.Option("--unit", help="With --out or --numbers: attention between these units: token, word or sentence.")
]
ParseOption = Annotated[
    str | None,
    typer.Option("--parse", help='Score syntactic relations, too: by a spaCy model, or by a few "rules" for English.'),
]


def heads(
    words: Words = None,
    model: ModelOption = "paper",
    corpus: CorpusOption = None,
    layer: LayerOption = -1,
    head: HeadOption = None,
    numbers: NumbersOption = False,
    unit: MapUnitOption = "token",
    parse: ParseOption = None,
    second: SecondOption = None,
    file: FileOption = None,
    row: RowOption = None,
    device: DeviceOption = "cpu",
    out: MapsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score what each attention head attends to: all tokens, the next or previous one, separators, punctuation.

    Example: `heedful heads "a fine film , but too long" --corpus reviews.txt --out heads.html`
    """
    import heedful
    from heedful.document import check_unit
    from heedful.render.heads import print_heads

    data, settings = input_and_settings(words or [], file, second)
    if settings:
        raise unknown_name("option", next(iter(settings)), _option_names())
    text = one_text(data, row, "heads")
    loaded = load_model(model, device)
    check_unit(unit)
    if numbers and as_json:
        raise BadInput("--numbers shows one map; leave --json out.")
    if numbers:
        return _draw(loaded, text, None, out, (layer, head, unit))
    scores = heedful.heads(loaded, [text] if corpus is None else [*read_texts(corpus).texts], parse=parse)
    if out is not None:
        _draw(loaded, text, scores, out, (layer, head, unit))
    return typer.echo(json.dumps(scores.as_dict())) if as_json else print_heads(scores, Console())


def _draw(model: Any, text: Any, scores: Any, out: Path | None, place: tuple[int, int | None, Any]) -> None:
    """Writes the maps of a text, or without scores shows one map with its numbers."""
    from heedful.models import check_offers
    from heedful.render.heads import show_numbers, write_heads

    check_offers(model, ("attention",), "--numbers")
    document = model.encode(text)
    maps = model.maps(document)
    if scores is None:
        show_numbers(document, maps, out, *place)
    elif out is not None:
        write_heads(document, maps, scores, out, *place)
    if out is not None:
        typer.echo(f"Wrote {out}", err=True)


def _option_names() -> list[str]:
    """The options of the command, without dashes; `as_json` is --json."""
    return [name.removeprefix("as_") for name in signature(heads).parameters if name != "words"]
