"""The command `heedful features steer`: a feature moved while a model writes, beside two controls."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.generate import MaxNewOption, SeedOption
from heedful.cli.output import deliver
from heedful.errors import BadInput

FeatureOption = Annotated[int, typer.Option("--feature", help="The number of the feature.")]
PromptsOption = Annotated[str, typer.Option("--prompts", help="A .txt file with a prompt per line, or a table.")]
StrengthOption = Annotated[
    str, typer.Option("--strength", help="An activation, or a multiple of the feature's largest such as 5x.")
]
HowOption = Annotated[str, typer.Option("--how", help="clamp to the strength, or push: add it.")]
WordsOption = Annotated[
    str | None, typer.Option("--words", help="The label: words, separated by commas; default: the words it raises.")
]
ExamplesOption = Annotated[
    str | None, typer.Option("--examples", help="Texts for the difference in means; default: what the model writes.")
]
WithoutOption = Annotated[
    str | None, typer.Option("--without", help="Texts without the property that those of --examples have.")
]
DrawnOption = Annotated[str, typer.Option("--strategy", help="greedy, sampling, top-k or nucleus.")]
CurveOption = Annotated[str, typer.Option("--curve", help='Other strengths, as multiples of the first; "" for none.')]
SteeredOption = Annotated[
    Path | None, typer.Option("--out", help="A page (.html), all numbers (.json), or a folder, which resumes.")
]


def steer(
    dictionary: shared.DictionaryArgument,
    feature: FeatureOption,
    prompts: PromptsOption,
    model: shared.OfModelOption = None,
    strength: StrengthOption = "1x",
    how: HowOption = "clamp",
    words: WordsOption = None,
    examples: ExamplesOption = None,
    without: WithoutOption = None,
    strategy: DrawnOption = "nucleus",
    max_new: MaxNewOption = 40,
    curve: CurveOption = "0.25,0.5,2",
    seed: SeedOption = 0,
    device: options.DeviceOption = "cpu",
    out: SteeredOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Clamp a feature while a model writes, beside two controls that move its activations as far, with intervals.

    Example: `heedful features steer runs/features --feature 12 --prompts prompts.txt --words happy --out page.html`
    """
    import heedful

    if without is not None and examples is None:
        raise BadInput("--without needs --examples, the texts with the property.")
    if out is not None and out.suffix and out.suffix not in (".html", ".json"):
        raise BadInput(f"--out is a page (.html), numbers (.json) or a folder (no ending); {out.name!r} was given.")
    loaded = shared.open_dictionary(dictionary, model, device)
    pair: Any = examples if without is None else (examples, without)
    folder = out if out is not None and not out.suffix else None
    result = heedful.features.steer(
        loaded,
        feature,
        prompts,
        strength=_number(strength),
        how=how,
        words=words,
        examples=pair,
        strategy=strategy,
        max_new=max_new,
        seed=seed,
        curve=_numbers(curve),
        out=folder,
    )
    if folder is not None:
        result.save(folder / "steering.json")
    deliver(result, out if folder is None else folder / "steering.html", as_json)


def _numbers(text: str) -> list[Any]:
    return [_number(part.strip()) for part in text.split(",") if part.strip()]


def _number(text: str) -> float | str:
    """The number that a text is, or the text, which is then refused or understood where it is used."""
    try:
        return float(text)
    except ValueError:
        return text
