"""The command `heedful attribute`: what each part of a generated text came from."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.generate import ChatOption, ContextOption, MaxNewOption, WriterOption
from heedful.cli.input import input_and_settings, load_model, one_text, read_text_file
from heedful.cli.output import deliver
from heedful.cli.progress import masks_bar
from heedful.errors import BadInput
from heedful.family import parse_words

if TYPE_CHECKING:
    from heedful.generation.written import Of

TextsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROMPT [OUTPUT]",
        help="The prompt: a text, a file, or - for standard input. Then the output; without one, the model writes it.",
    ),
]
OfOption = Annotated[
    str, typer.Option("--of", help="Explain each of the tokens or words, the whole sequence, or a span such as 3:7.")
]
OtherOutputOption = Annotated[
    str | None, typer.Option("--against", help="Explain the difference between the output and this one.")
]
MeasureOption = Annotated[
    str, typer.Option("--measure", help="log-probability, logit or entropy; with a context also kl or context-gain.")
]
SourcesOption = Annotated[
    str | None,
    typer.Option(
        "--unit", help="The sources: token, word, type, segment, sentence or passage. Default: word, or passage."
    ),
]
EarlierOption = Annotated[
    str | None, typer.Option("--earlier", help="Whether earlier output is a source too: source or fixed.")
]


def attribute(
    words: TextsArgument = None,
    model: WriterOption = "writer",
    method: Annotated[
        str, typer.Option("--method", help="A method that `heedful list` prints, or frozen-cache.")
    ] = "shapley-sampled",
    of: OfOption = "tokens",
    context: ContextOption = None,
    against: OtherOutputOption = None,
    measure: MeasureOption = "log-probability",
    unit: SourcesOption = None,
    earlier: EarlierOption = None,
    chat: ChatOption = None,
    max_new: MaxNewOption = 40,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    memory: options.MemoryOption = None,
    seconds: options.SecondsOption = None,
    half: options.HalfOption = False,
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say what each part of a generated text came from: words of the prompt, passages of its context, earlier output.

    Example: `heedful attribute "This film was" "a great surprise" --method leave-one-out --out page.html`

    Every setting of the method is an option. `heedful list leave-one-out` prints the settings of leave-one-out.
    """
    import heedful

    prompt, output, settings = _texts_and_settings(words or [])
    settings |= {"of": _of(of), "against": against, "measure": measure, "unit": unit, "earlier": earlier, "chat": chat}
    settings |= {"max_new": max_new, "memory": memory, "seconds": seconds, "half": half}
    passages = None if context is None else read_text_file(context)
    loaded = load_model(model, device, precision)
    with masks_bar() as callbacks:
        result = heedful.attribute(loaded, prompt, output, method, context=passages, **callbacks, **settings)
    deliver(result, out, as_json)


def _texts_and_settings(words: list[str]) -> tuple[str, str | None, dict[str, Any]]:
    """The prompt, the output if one is given, and the settings of the method."""
    given, settings = parse_words(words)
    if len(given) > 2:
        raise BadInput(
            f"Only a prompt and an output are allowed; {given[2]!r} is a third text. Put quotes around each."
        )
    data, _ = input_and_settings(given[:1], None, None)
    return one_text(data, None, "attribute"), given[1] if len(given) > 1 else None, settings


def _of(text: str) -> "Of":
    """The parts to explain; two numbers with a colon are a span."""
    span = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(span[1]), int(span[2])) if span else text  # type: ignore[return-value]
