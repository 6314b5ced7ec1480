"""ROAR on all of IMDB, for the table and the figure of docs/roar.md: `heedful roar imdb` where there is no pyarrow.

    python -m studies.roar --pack imdb.jsonl.xz
    python -m studies.roar --reviews imdb.jsonl.xz --out runs/roar --device cuda --at-once 92 --workers 16

The first command packs the reviews, cut to the words that the model reads, into a file that needs no other package to
be read. The second trains 92 models a seed; a stopped run resumes from its folder.
"""

import argparse
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, final

import heedful
from heedful.datasets import Dataset, Example, Split
from heedful.datasets.imdb import Imdb
from heedful.evaluation.retrainers import SingleLayerRetrainer
from heedful.models.single_layer import SingleLayer
from heedful.models.training import Recipe
from heedful.run_folder import write_atomically

SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@final
@dataclass(frozen=True)
class PackedReviews(Dataset):
    """The reviews of a packed file."""

    name: ClassVar[str] = "imdb"
    classes: ClassVar[tuple[str, ...]] = Imdb.classes

    splits: dict[str, list[list[Any]]] = field(repr=False)

    def examples(self, split: Split) -> Sequence[Example]:
        return [Example(text, label) for text, label in self.splits[split]]


def pack(path: Path) -> None:
    """Writes a line of JSON per split: its texts, cut after the last word that the paper's model reads, and labels."""
    model, lines = heedful.load("paper"), []
    for split in SPLITS:
        examples = Imdb().examples(split)
        ends = [model.encode(example.text).word_spans[-1][1] for example in examples]
        lines.append(json.dumps([split, [[e.text[:end], e.label] for e, end in zip(examples, ends, strict=True)]]))
    write_atomically(path, lzma.compress("\n".join(lines).encode()))


def unpack(path: Path) -> PackedReviews:
    """The data set of a packed file."""
    return PackedReviews(dict(map(json.loads, lzma.decompress(path.read_bytes()).decode().splitlines())))


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m studies.roar", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add: Any = parser.add_argument
    add("--pack", type=Path, help="write the reviews to this file, and nothing else")
    add("--reviews", type=Path, help="a packed file; default: the data set imdb")
    add("--out", type=Path, help="folder of the run, which a stopped run resumes")
    add("--seeds", type=int, default=3)
    add("--n", type=int, help="at most this many reviews a split")
    add("--n-epochs", type=int, default=10)
    add("--device", default="cpu")
    add("--at-once", type=int, default=1, help="models trained side by side: 1 on a CPU, 92 on a GPU")
    add("--workers", type=int, default=1, help="processes that explain")
    asked = parser.parse_args(given)
    if asked.pack:
        pack(asked.pack)
        return
    recipe = Recipe(n_epochs=asked.n_epochs, device=asked.device)
    model = heedful.load("paper")
    assert isinstance(model, SingleLayer)
    retrainer = SingleLayerRetrainer(model, recipe, asked.at_once)
    data = "imdb" if asked.reviews is None else unpack(asked.reviews)
    sizes = {"seeds": asked.seeds, "n": asked.n, "workers": asked.workers, "out": asked.out}
    # `heedful.show` needs rich, and pictures matplotlib; `heedful.RoarCurves.load(OUT/results.json)` draws elsewhere.
    print(heedful.roar(retrainer, data, mode="both", progress=True, **sizes))


if __name__ == "__main__":
    main()
