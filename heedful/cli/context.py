"""The command `heedful context`: which tokens of a generated text depend on its context."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.attribute import SourcesOption, TextsArgument
from heedful.cli.generate import ChatOption, ContextOption, MaxNewOption, SeedOption, WriterOption
from heedful.cli.input import input_and_settings, load_model, one_text, read_text_file
from heedful.cli.output import deliver
from heedful.errors import BadInput
from heedful.family import parse_words

AlphaOption = Annotated[float, typer.Option("--alpha", help="The error rate.")]
NullOption = Annotated[
    str, typer.Option("--null", help="Null contexts: foreign (other sentences) or shuffled (the context's own words).")
]
CountOption = Annotated[int, typer.Option("--n-null", help="The number of null contexts.")]


def context(
    words: TextsArgument = None,
    context: ContextOption = None,
    model: WriterOption = "writer",
    method: Annotated[str, typer.Option("--method", help="A method that `heedful list` prints.")] = "shapley-sampled",
    unit: SourcesOption = None,
    alpha: AlphaOption = 0.05,
    null: NullOption = "foreign",
    n_null: CountOption = 39,
    seed: SeedOption = 0,
    chat: ChatOption = None,
    max_new: MaxNewOption = 40,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    memory: options.MemoryOption = None,
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Say which tokens of an output depend on the context, and which sentences of it each of them came from.

    Example: `heedful context "Who directed it?" --context passages.txt --model MODEL --out page.html`
    """
    import heedful

    passages, prompt, output, settings = _read(words or [], context)
    chosen: dict[str, Any] = {"null": null, "unit": unit, "chat": chat, **settings}
    reliance = heedful.context(
        load_model(model, device, precision),
        passages,
        prompt,
        output,
        method=method,
        alpha=alpha,
        n_null=n_null,
        seed=seed,
        max_new=max_new,
        memory=memory,
        **chosen,
    )
    deliver(reliance, out, as_json)


def _read(words: list[str], context: Path | None) -> tuple[str, str, str | None, dict[str, Any]]:
    """The passages, the prompt, the output if there is one, and the settings of the method."""
    given, settings = parse_words(words)
    if len(given) > 2:
        raise BadInput(f"A prompt and an output are allowed; {given[2]!r} is a third. Put quotes around each text.")
    data, _ = input_and_settings(given[:1], None, None)
    prompt = one_text(data, None, "context")
    if context is None:
        raise BadInput("There is no context; give --context FILE, with one passage a paragraph.")
    return read_text_file(context), prompt, given[1] if len(given) > 1 else None, dict(settings)
