"""What the trainers of all model families share: reading data, training, the model card, the arguments."""

import argparse
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from pyarrow import parquet
from torch import Tensor, nn

from heedful.models.training_loop import Rows, Schedule, TrainingLoop, TrainingState, adamw
from heedful.run_folder import RunFolder, write_atomically


@final
class EpochResult(NamedTuple):
    """The results of one pass over the data; the family says what `validation` measures."""

    number: int
    loss: float
    validation: float
    seconds: float


@final
@dataclass(frozen=True)
class TrainingTask:
    """What is trained, on how many examples, and what is minimised; `settings` is all that the result depends on."""

    name: str
    model: nn.Module
    n_examples: int
    loss: Callable[[Rows], Float[Tensor, ""]]
    validate: Callable[[], float]
    seed: int
    settings: Mapping[str, Any]


def train_model(schedule: Schedule, task: TrainingTask, folder: Path) -> list[EpochResult]:
    """Trains, or resumes from the last finished epoch in the folder; the last epoch is kept, none is chosen.

    After each epoch `state/NAME/state.safetensors` holds weights and optimiser, so a kill loses at most the current
    epoch. Order, dropout and augmentation depend on seed and epoch alone: on a CPU a resumed run gives the bytes of an
    unbroken one.
    """
    model = task.model
    device = next(model.parameters()).device
    run = RunFolder(folder / "state" / task.name)
    run.claim(task.settings)
    state = TrainingState(run.path / "state.safetensors", dict(model.named_parameters()), adamw(model, schedule))
    state.restore(EpochResult)
    started = perf_counter()

    def batches(epoch: int) -> Sequence[Rows]:  # noqa: ARG001
        # Drawn from torch's random state, which the loop seeds for every epoch.
        return torch.randperm(task.n_examples).to(device).split(schedule.batch_size)

    def loss(rows: Rows) -> Float[Tensor, ""]:
        with half_precision(device):
            return task.loss(rows)

    def evaluate(number: int, mean_loss: float) -> EpochResult:
        model.eval()
        with torch.inference_mode(), half_precision(device):
            validation = task.validate()
        model.train()
        nonlocal started
        seconds, started = perf_counter() - started, perf_counter()
        return EpochResult(number, mean_loss, validation, seconds)

    def report(epoch: EpochResult) -> None:
        say(
            f"{task.name}: epoch {epoch.number + 1} of {schedule.n_epochs}, loss {epoch.loss:.4f}, "
            f"validation {epoch.validation:.4f}, {epoch.seconds:.1f} s"
        )

    model.train()
    weights = list(model.parameters())
    loop = TrainingLoop(batches, loss, evaluate, task.seed, schedule.rate, weights, finished=report)
    loop.run(schedule.n_epochs, state)
    model.eval()
    return state.epochs


def say(line: str) -> None:
    """Progress, on the error stream and at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def half_precision(device: torch.device) -> torch.autocast:
    """Bfloat16 products on a GPU; on a CPU nothing is changed."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def read_columns(path: Path, *columns: str, most: int | None = None) -> list[list[Any]]:
    """The first rows of some columns of a parquet file, column by column."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; name the data folder with --data or HEEDFUL_DATA.")
    table = parquet.read_table(path, columns=list(columns)).slice(0, most)
    return [table[column].to_pylist() for column in columns]


def describe_files(files: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, dict[str, object]]:
    """Of the columns read from each file, how many rows they have and their SHA-256, however the file is compressed."""
    return {
        name: {"n_rows": len(columns[0]), "sha256": hashlib.sha256(repr(columns).encode()).hexdigest()}
        for name, columns in files.items()
    }


def token_numbers(
    tokenizer: Any, texts: Sequence[str], max_length: int, filler: int, device: str
) -> Int[Tensor, "batch token"]:
    """Texts as token numbers on the device, filled up on the right; a text that is too long keeps its end sign.

    The tokenizer is asked for whole texts: it would remember to cut them, and be saved so.
    """
    rows = [row.ids for row in tokenizer.backend_tokenizer.encode_batch_fast(list(texts))]
    rows = [row if len(row) <= max_length else [*row[: max_length - 1], row[-1]] for row in rows]
    table = np.full((len(rows), max(map(len, rows))), filler)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(table).to(device)


def save_model(model: Any, companion: Any, folder: Path) -> None:
    """Saves model and tokenizer or image processor; the weights are rounded to what float16 can hold.

    So the figures of the card, measured afterwards, hold for the parcel that travels in half precision (`parcel.py`).
    """
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    model.save_pretrained(folder)
    companion.save_pretrained(folder)


def write_card(
    folder: Path, data: Mapping[str, object], settings: Any, figures: Mapping[str, object], *runs: Sequence[EpochResult]
) -> None:
    """`card.json`: what a user of the model must know."""
    card = {
        "command": shlex.join(sys.orig_argv),
        "data": data,
        "settings": asdict(settings),
        "figures": figures,
        "seconds": round(sum(epoch.seconds for run in runs for epoch in run), 1),
        "torch": torch.__version__,
        "epochs": [[epoch._asdict() for epoch in run] for run in runs],
    }
    write_atomically(folder / "card.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    say(json.dumps(figures, indent=1, ensure_ascii=False))


def parse_arguments(description: str | None) -> argparse.Namespace:
    """What every family's program is asked with."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEEDFUL_DATA"), help="default: $HEEDFUL_DATA")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model; a stopped run goes on from it")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="a tiny model and a few dozen steps, to try the program")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or HEEDFUL_DATA")
    return given
