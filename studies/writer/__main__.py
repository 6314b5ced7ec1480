"""Trains the bundled language model "writer", a small GPT-2 that writes film reviews.

    python -m studies.writer.prepare --data DIR --out runs/writer        vocabulary and token ids
    python -m studies.writer --out runs/writer --device cuda --seconds 220 --dropout 0.1 0.05
    python -m studies.writer.card runs/writer                            into the package, with its card

Every value of dropout is trained as many epochs as fit into the seconds; the one that is best on the reviews set apart
is kept. The test reviews are used for nothing but the last figures. With --state a killed run resumes.
"""

import argparse
import json
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from heedful.models.language.gpt2 import Gpt2Config, Gpt2Network, initial_gpt2
from heedful.models.language.training import Gpt2Recipe, LanguageEpoch, TokenStream, fit_gpt2, measure_losses
from heedful.run_folder import write_atomically, write_tensors
from studies.families.training import say
from studies.writer.corpus import unpack

SIZES = Gpt2Config()
_MOST_EPOCHS = 40


def train(
    folder: Path,
    state: Path | None,
    out: Path,
    config: Gpt2Config,
    recipe: Gpt2Recipe,
    dropouts: list[float],
    seconds: float,
) -> None:
    """Leaves weights.safetensors, figures.json and the losses of all test reviews in `out`."""
    about = json.loads((folder / "corpus.json").read_text())
    train_ids, held_out, test = (unpack(folder / split) for split in ("train", "held_out", "test"))
    stream = TokenStream.of(train_ids, about["end"])
    say(f"{len(train_ids):,} texts, {len(stream.ids):,} tokens; set apart {len(held_out):,}; test {len(test):,}")
    n_epochs = recipe.n_epochs
    if seconds:
        pace = _seconds_an_epoch(stream, held_out, config, recipe)
        n_epochs = max(2, min(_MOST_EPOCHS, int(seconds / pace)))
        say(f"{pace:.1f} seconds an epoch, so {n_epochs} epochs")
    figures: dict[str, Any] = {
        "config": asdict(config),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    figures["candidates"], best, chosen = {}, float("inf"), None
    for share in dropouts:
        started, one = time.perf_counter(), replace(recipe, dropout=share, n_epochs=n_epochs)
        network = initial_gpt2(config, one.seed).to(one.device)
        epochs = fit_gpt2(network, stream, held_out, one, state and state / f"{share}.safetensors", finished=_report)
        _round(network)
        sums, counts = measure_losses(network, held_out, about["end"])
        held = float(sums.sum() / counts.sum())
        figures["candidates"][str(share)] = {
            "recipe": asdict(one),
            "epochs": epochs,
            "held_out_loss": held,
            "seconds": round(time.perf_counter() - started, 1),
        }
        say(f"dropout {share}: {held:.4f} on the reviews set apart")
        if held < best:
            best, chosen, figures["chosen"] = held, network, str(share)
            write_tensors(out / "weights.safetensors", {n: w.half() for n, w in network.state_dict().items()}, {})
            write_atomically(out / "figures.json", json.dumps(figures, indent=1))
    assert chosen is not None
    sums, counts = measure_losses(chosen, test, about["end"])
    figures["test_loss"] = float(sums.sum() / counts.sum())
    say(f"chosen: dropout {figures['chosen']}; {figures['test_loss']:.4f} on the test reviews")
    write_atomically(out / "figures.json", json.dumps(figures, indent=1))
    write_tensors(
        out / "test.safetensors", {"losses": torch.from_numpy(sums), "n_tokens": torch.from_numpy(counts)}, {}
    )


def _seconds_an_epoch(stream: TokenStream, held_out: list[list[int]], config: Gpt2Config, recipe: Gpt2Recipe) -> float:
    """The time of an epoch, from a part of one; of two, since the first one is slower."""
    n = len(stream.ids) // 10
    part = TokenStream(stream.ids[:n], stream.starts[stream.starts < n])
    for _ in range(2):
        started = time.perf_counter()
        fit_gpt2(initial_gpt2(config, 0).to(recipe.device), part, held_out[:8], replace(recipe, n_epochs=1), None)
        seconds = time.perf_counter() - started
    return seconds * 10


def _round(network: Gpt2Network) -> None:
    """Makes the weights those that the file can hold, in half precision: figures are measured on what is shipped."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(weight.half().float())


def _report(epoch: LanguageEpoch) -> None:
    say(
        f"epoch {epoch.number + 1}: loss {epoch.loss:.4f}, set apart {epoch.held_out_loss:.4f}, {time.time() % 1e5:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/writer"), help="what `prepare` wrote")
    parser.add_argument("--state", type=Path, help="where a killed run finds its last epoch; it must name --epochs")
    parser.add_argument("--out", type=Path, default=Path("runs/writer"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=0, help="for each value of dropout; 0: --epochs")
    parser.add_argument("--epochs", type=int, default=Gpt2Recipe.n_epochs)
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.1])
    parser.add_argument("--rate", type=float, default=Gpt2Recipe.learning_rate)
    parser.add_argument("--quick", action="store_true", help="a tiny model and one epoch, to try the program")
    given = parser.parse_args()
    recipe = Gpt2Recipe(learning_rate=given.rate, n_epochs=given.epochs, device=given.device)
    config = SIZES
    if given.quick:
        config, recipe = replace(SIZES, T_max=64, d_e=16, depth=2, n_heads=2, d_hidden=32), replace(recipe, n_epochs=1)
    train(given.folder, given.state, given.out, config, recipe, given.dropout, given.seconds)


if __name__ == "__main__":
    main()
