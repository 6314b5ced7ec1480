"""The command `heedful generate`: the text that a language model writes after a prompt."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.input import input_and_settings, load_model, one_text, read_text_file
from heedful.cli.output import deliver
from heedful.errors import unknown_name

WriterOption = Annotated[
    str, typer.Option("--model", help='"writer", a folder that `heedful train` wrote, or a Hugging Face model.')
]
ContextOption = Annotated[
    Path | None, typer.Option("--context", help="A file with passages that stand before the prompt, one a paragraph.")
]
ChatOption = Annotated[
    bool | None,
    typer.Option("--chat/--no-chat", help="Use the tokenizer's chat template, or not; default: if it has one."),
]
MaxNewOption = Annotated[int, typer.Option("--max-new", help="The largest number of tokens to write.")]
SeedOption = Annotated[int, typer.Option("--seed", help="The seed of the random generator.")]

TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", help="Divides the logits; for sampling, top-k and nucleus.")
]
KOption = Annotated[int | None, typer.Option("--k", help="top-k: the number of tokens that are kept; 50.")]
POption = Annotated[float | None, typer.Option("--p", help="nucleus: the probability that is kept; 0.9.")]
WidthOption = Annotated[int | None, typer.Option("--width", help="beam: the number of beams; 4.")]
StrategyOption = Annotated[str, typer.Option("--strategy", help="greedy, sampling, top-k, nucleus or beam.")]


def generate(
    words: options.Words = None,
    strategy: StrategyOption = "greedy",
    model: WriterOption = "writer",
    context: ContextOption = None,
    chat: ChatOption = None,
    max_new: MaxNewOption = 40,
    temperature: TemperatureOption = None,
    k: KOption = None,
    p: POption = None,
    width: WidthOption = None,
    seed: SeedOption = 0,
    file: options.FileOption = None,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write the text that a language model continues a prompt with, and show what else it could have written.

    Example: `heedful generate "This film was" --strategy nucleus --p 0.9 --max-new 40 --seed 0`
    """
    import heedful

    data, unknown = input_and_settings(words or [], file, None)
    if unknown:
        raise unknown_name("option", next(iter(unknown)), ("context", "max_new", "strategy", *_SETTINGS))
    given = dict(zip(_SETTINGS, (temperature, k, p, width), strict=True))
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    settings |= {"context": None if context is None else read_text_file(context), "chat": chat}
    loaded, prompt = load_model(model, device, precision), one_text(data, None, "generate")
    deliver(heedful.generate(loaded, prompt, strategy, max_new=max_new, seed=seed, **settings), out, as_json)


_SETTINGS = ("temperature", "k", "p", "width")
