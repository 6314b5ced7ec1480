"""One trained model of every family explained end to end: pictures for the docs, numbers as JSON.

    python -m studies.explanations --models runs/families --out runs/explanations [--pictures] [--device cuda]

The same code runs on a GPU; `--against FILE` then prints how far its numbers are from those of another run.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import heedful
from heedful.evaluation.comparison import Comparison
from heedful.run_folder import write_atomically

REVIEW = "The actors are wonderful, but the unbelievably dull plot ruins everything. It is not good."
BEGUN = "This movie was a complete waste of"
SOURCE = heedful.Pair("Two dogs play in the snow.", "Zwei Hunde spielen im")
FAMILIES = ("encoder", "decoder", "translator", "vision")


def explained(family: str, model: Any, data: Path) -> Comparison:
    """Every method on one input of the family; gradient-mean is left out, being zero behind a layer norm."""
    names = [name for name, kind in heedful.methods().items() if name != "gradient-mean" and not kind.opt_in]
    names = [name for name in names if heedful.methods()[name].needs <= model.offers]
    inputs = {"encoder": REVIEW, "decoder": BEGUN, "translator": SOURCE}
    given = inputs[family] if family != "vision" else picture(data)
    return heedful.compare(model, given, names)


def picture(data: Path) -> Any:
    """The first golden retriever (class 2) of the validation pictures."""
    import io

    import pyarrow.parquet as parquet
    from PIL import Image

    rows = parquet.read_table(data / "tiny_imagenet_16c" / "validation.parquet").to_pylist()
    return Image.open(io.BytesIO(next(row["jpeg"] for row in rows if row["label"] == 2))).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("runs/families"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("HEEDFUL_DATA", ".")))
    parser.add_argument("--out", type=Path, default=Path("runs/explanations"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--against", type=Path)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, Any] = {}
    for family in FAMILIES:
        start = perf_counter()
        model = heedful.load(str(asked.models / family), asked.device)
        comparison = explained(family, model, asked.data)
        numbers[family] = {
            "target": comparison.explanations[0].target.name,
            "output": comparison.explanations[0].output,
            "scores": {e.method: e.scores.tolist() for e in comparison.explanations},
            "milliseconds": {e.method: 1000 * e.facts["seconds"] for e in comparison.explanations},
        }
        sys.stderr.write(f"{family}: {len(comparison.explanations)} methods in {perf_counter() - start:.1f} s\n")
        if asked.pictures:
            draw(family, comparison, asked.out)
    write_atomically(asked.out / f"explanations-{asked.device}.json", json.dumps(numbers))
    if asked.against is not None:
        compare_runs(numbers, json.loads(asked.against.read_text(encoding="utf-8")))


def draw(family: str, comparison: Comparison, out: Path) -> None:
    """Strips (or tinted pictures), the report, and the heads of the last layer."""
    from heedful.render import write
    from heedful.render.figures import draw_head_maps

    write(comparison, out / f"{family}.png")
    write(comparison, out / f"{family}.html")
    figure = draw_head_maps(comparison)
    write_atomically(
        out / f"{family}-heads.png", lambda file: figure.savefig(file, format="png", bbox_inches="tight", dpi=150)
    )


def compare_runs(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The largest difference of each method's scores, as a share of its largest score."""
    for family, found in ours.items():
        other = theirs[family]["scores"]
        away = {
            method: float(np.abs(np.subtract(scores, other[method])).max() / np.abs(other[method]).max())
            for method, scores in found["scores"].items()
        }
        worst = max(away, key=lambda method: away[method])
        sys.stdout.write(f"{family}: median {np.median(list(away.values())):.1e}, most {away[worst]:.1e} ({worst})\n")


if __name__ == "__main__":
    main()
