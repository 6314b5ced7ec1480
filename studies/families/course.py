"""What the families share: reading the data, the course of the training, the resume file, the card."""

import argparse
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil, cos, pi
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from pyarrow import parquet
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

Indices = Int[Tensor, "batch"]


@final
@dataclass(frozen=True)
class Course:
    """How long and how fast to train: AdamW, the learning rate rising along a line and falling along a cosine to 0."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.01
    rising_share: float = 0.05

    def rate(self, share: float) -> float:
        """The learning rate when this share of all steps is done."""
        if share < self.rising_share:
            return self.learning_rate * share / self.rising_share
        return self.learning_rate * (1 + cos(pi * (share - self.rising_share) / (1 - self.rising_share))) / 2


@final
class Epoch(NamedTuple):
    """What one pass over the data gave; the family says what `validation` measures."""

    number: int
    loss: float
    validation: float
    seconds: float


@final
@dataclass(frozen=True)
class Lesson:
    """What is trained, on how many examples, and what is minimised; `settings` is all that the outcome depends on."""

    name: str
    model: nn.Module
    n_examples: int
    loss: Callable[[Indices], Float[Tensor, ""]]
    validate: Callable[[], float]
    seed: int
    settings: str


def follow(course: Course, lesson: Lesson, folder: Path) -> list[Epoch]:
    """Trains, or goes on from the last whole epoch found in the folder; the last epoch is kept, none is chosen.

    After each epoch `state/NAME.safetensors` holds the weights and the optimiser, written beside the old file and then
    moved over it, so that a kill at any moment loses at most the epoch under way. Order, dropout and augmentation
    depend on seed and epoch alone: on a CPU a resumed run gives the bytes of an unbroken one.
    """
    model = lesson.model
    device = next(model.parameters()).device
    optimiser = _optimiser(model, course.weight_decay)
    state = _State(folder / "state" / f"{lesson.name}.safetensors", model, optimiser, lesson.settings)
    epochs = state.restore()
    n_batches = ceil(lesson.n_examples / course.batch_size)
    for number in range(len(epochs), course.n_epochs):
        start, total = perf_counter(), torch.zeros((), device=device)
        model.train()
        with chance(lesson.seed, number):
            batches = torch.randperm(lesson.n_examples).to(device).split(course.batch_size)
            for count, batch in enumerate(batches):
                for group in optimiser.param_groups:
                    group["lr"] = course.rate((number * n_batches + count + 1) / (course.n_epochs * n_batches + 1))
                with half_precision(device):
                    loss = lesson.loss(batch)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                total += loss.detach() * len(batch)
        if not total.isfinite():
            raise ValueError(f"The loss is not a finite number in epoch {number + 1}; try a smaller learning_rate.")
        model.eval()
        with torch.inference_mode(), half_precision(device):
            validation = lesson.validate()
        epoch = Epoch(number, float(total) / lesson.n_examples, validation, perf_counter() - start)
        epochs.append(epoch)
        state.keep(epochs)
        say(
            f"{lesson.name}: epoch {number + 1} of {course.n_epochs}, loss {epoch.loss:.4f}, "
            f"validation {validation:.4f}, {epoch.seconds:.1f} s"
        )
    model.eval()
    return epochs


def say(line: str) -> None:
    """Progress, on the error stream and at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def chance(*seed: int) -> Iterator[None]:
    """Runs the block under a random state made from the seed; the state outside is left as it was."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        yield


def half_precision(device: torch.device) -> torch.autocast:
    """Bfloat16 products on a GPU; on a CPU nothing is changed."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def read(path: Path, *columns: str, most: int | None = None) -> list[list[Any]]:
    """The first rows of some columns of a parquet file, column by column."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; name the data folder with --data or HEEDFUL_DATA.")
    table = parquet.read_table(path, columns=list(columns)).slice(0, most)
    return [table[column].to_pylist() for column in columns]


def describe(files: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, dict[str, object]]:
    """Of the columns read from each file, how many rows they have and their SHA-256, however the file is compressed."""
    return {
        name: {"n_rows": len(columns[0]), "sha256": hashlib.sha256(repr(columns).encode()).hexdigest()}
        for name, columns in files.items()
    }


def numbered(
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


def finish(model: Any, companion: Any, folder: Path) -> None:
    """Saves model and tokenizer or image processor; the weights are rounded to what float16 can hold.

    So the figures of the card, measured afterwards, hold for the parcel that travels in half precision (`parcel.py`).
    """
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    model.save_pretrained(folder)
    companion.save_pretrained(folder)


def write_card(
    folder: Path, data: Mapping[str, object], settings: Any, figures: Mapping[str, object], *courses: Sequence[Epoch]
) -> None:
    """`card.json`: what a user of the model must know."""
    card = {
        "command": shlex.join(sys.orig_argv),
        "data": data,
        "settings": asdict(settings),
        "figures": figures,
        "seconds": round(sum(epoch.seconds for course in courses for epoch in course), 1),
        "torch": torch.__version__,
        "epochs": [[epoch._asdict() for epoch in course] for course in courses],
    }
    (folder / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(json.dumps(figures, indent=1, ensure_ascii=False))


def arguments(description: str | None) -> argparse.Namespace:
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


def _optimiser(model: nn.Module, weight_decay: float) -> torch.optim.AdamW:
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, fused=True)


@final
class _State(NamedTuple):
    """The resume file of one lesson; tied weights stand in it once."""

    path: Path
    model: nn.Module
    optimiser: torch.optim.AdamW
    settings: str

    def keep(self, epochs: list[Epoch]) -> None:
        tensors = {f"model.{name}": weight.detach() for name, weight in self.model.named_parameters()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": tensor for name, tensor in state.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        metadata = {"settings": self.settings, "epochs": json.dumps(epochs)}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, fresh, metadata)
        fresh.replace(self.path)

    def restore(self) -> list[Epoch]:
        if not self.path.exists():
            return []
        with safe_open(self.path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["settings"] != self.settings:
            raise ValueError(f"{self.path} is of a run with other settings or data; name another folder or delete it.")
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(tensors[f"model.{name}"])
        state = self.optimiser.state_dict()
        for name, tensor in tensors.items():
            kind, number, field = name.split(".", 2)
            if kind == "optimiser":
                state["state"].setdefault(int(number), {})[field] = tensor
        self.optimiser.load_state_dict(state)
        return [Epoch(*row) for row in json.loads(metadata["epochs"])]
