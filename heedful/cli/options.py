"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Words = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="The text, a file of texts, or - for standard input.")
]
_NAMED, _OTHERS = '"paper", "reviews", "writer"', "a folder or file that `heedful train` wrote, or a Hugging Face model"
MODELS = f"{_NAMED}, few-words:DATA, {_OTHERS}"
ATTENTION_MODELS = f"{_NAMED}, {_OTHERS}"
"""The same without the model that has no attention and is not trained."""
ModelOption = Annotated[str, typer.Option("--model", help=f"{MODELS}.")]
ModelsOption = Annotated[list[str] | None, typer.Option("--model", help=f"{MODELS}. May be given several times.")]
MethodsOption = Annotated[
    str | None,
    typer.Option("--methods", help='Method names, separated by commas, or "all"; default: one for each idea.'),
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
PrecisionOption = Annotated[
    str, typer.Option("--precision", help="float32, float64, bfloat16 or float16 (Hugging Face models only).")
]
SecondOption = Annotated[
    str | None,
    typer.Option("--second", help="The second text of a pair; for a translation model, the start of the translation."),
]
ScaleOption = Annotated[str, typer.Option("--scale", help="Explain the logit, the log-probability or the probability.")]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The class to explain, by number or name; a next token or missing word by name or id:NUMBER; an answer "
        "as the context spells it; a word with its label: Paris=B-LOC. Default: the predicted one.",
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option("--against", help="Explain the difference between the target and this class, token, answer or label."),
]
DictionaryOption = Annotated[
    str | None, typer.Option("--dictionary", help="Explain a --feature of this dictionary: a folder, file or name.")
]
FeatureOption = Annotated[
    int | None, typer.Option("--feature", help="The number of a feature of the --dictionary; explained as a target.")
]
UnitOption = Annotated[
    str, typer.Option("--unit", help="Text: token, word, type, segment or sentence; image: patch or segment.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Write a report: .html, .json, .png, .svg or .pdf; explain: or a folder.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of formatted text.")]
MemoryOption = Annotated[
    str | None, typer.Option("--memory", help="Memory limit of a forward pass, without the model: 2GB, 500MB.")
]
SecondsOption = Annotated[
    float | None, typer.Option("--seconds", help="Time limit; the number of samples is lowered to keep it.")
]
HalfOption = Annotated[
    bool, typer.Option("--half", help="Evaluate masks in half precision where the outputs change little.")
]
FileOption = Annotated[
    Path | None, typer.Option("--file", help="Read a text, or the rows of a .csv, .tsv, .jsonl or .parquet file.")
]
TextColumnOption = Annotated[
    str | None, typer.Option("--text-column", help="The column of the texts; default: found by name.")
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", help="The column of the labels, or none; default: found by name.")
]
IdColumnOption = Annotated[
    str | None, typer.Option("--id-column", help="The column of the ids; default: found by name.")
]
RowOption = Annotated[str | None, typer.Option("--row", help="The row of a table to explain, by its id or number.")]
DatasetArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="DATASET", help="A data set that `heedful list` prints, or a file; default: imdb."),
]
NOption = Annotated[int | None, typer.Option("-n", "--n", help="The number of texts, drawn at random; default: 200.")]
SplitOption = Annotated[str, typer.Option("--split", help="train, validation or test.")]
TextsOption = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="Texts instead of a data set: one per line, or a .csv, .tsv, .jsonl or .parquet table.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="The seed for drawing texts, and for all else that is random.")]
FolderOption = Annotated[
    Path | None,
    typer.Option("--out", help="The folder of the report. The same command with the same folder resumes the run."),
]
