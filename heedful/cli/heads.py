"""The command `heedful heads`: what each attention head attends to."""

import json
from inspect import signature
from pathlib import Path
from typing import Annotated

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
    from heedful.models import check_offers
    from heedful.render.heads import print_heads, show_numbers, write_heads

    data, settings = input_and_settings(words or [], file, second)
    if settings:
        raise unknown_name("option", next(iter(settings)), _option_names())
    text = one_text(data, row, "heads")
    loaded = load_model(model, device)
    check_unit(unit)
    if numbers and as_json:
        raise BadInput("--numbers shows one map; leave --json out.")
    if numbers:
        check_offers(loaded, ("attention",), "--numbers")
        document = loaded.encode(text)
        show_numbers(document, loaded.maps(document), out, layer, head, unit)  # type: ignore[arg-type, attr-defined]
    else:
        scores = heedful.heads(loaded, [text] if corpus is None else [*read_texts(corpus).texts], parse=parse)
        if out is not None:
            document = loaded.encode(text)
            write_heads(document, loaded.maps(document), scores, out, layer, head, unit)  # type: ignore[arg-type, attr-defined]
        typer.echo(json.dumps(scores.as_dict())) if as_json else print_heads(scores, Console())
    if out is not None:
        typer.echo(f"Wrote {out}", err=True)


def _option_names() -> list[str]:
    """The options of the command, without dashes; `as_json` is --json."""
    return [name.removeprefix("as_") for name in signature(heads).parameters if name != "words"]
