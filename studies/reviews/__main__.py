"""Trains the bundled model "reviews", a small transformer that judges film reviews and single sentences.

    python -m studies.reviews --data DIR --out runs/reviews --device cuda [--seconds 280] [--quick]

The folder gets the tokens, the pre-trained network, the chosen model and `figures.json`. IMDB's test reviews and
SST-2's validation sentences are used for nothing but the last figures; held-out training texts choose among the seeds.
"""

import argparse
import copy
import json
import os
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.encoder.file import load_encoder, save_encoder
from heedful.models.encoder.network import EncoderConfig, EncoderNetwork
from heedful.models.encoder.word_pieces import WordPieces
from heedful.run_folder import write_atomically
from heedful.statistics.intervals import wilson
from studies.families.training import say
from studies.reviews.corpus import Texts, read_corpus
from studies.reviews.initial import initial_encoder
from studies.reviews.sanity import SENTENCES
from studies.reviews.training import Settings, accuracy, differences, finetune, mean_of, pretrain

CLASSES = ("negative", "positive")
QUICK = Settings(
    model=EncoderConfig(depth=2, n_heads=2, T_max=32, d_e=16, d_hidden=32),
    n_pieces=300,
    n_held=30,
    n_steps=8,
    rows_a_step=16,
    seeds=(0, 1),
    n_epochs=1,
    reviews_a_step=8,
    phrases_a_step=10,
    verdicts_a_step=8,
)


def train(data: Path, out: Path, settings: Settings) -> dict[str, Any]:
    """Trains, chooses and evaluates; leaves model.safetensors and figures.json in the folder."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    vocabulary, texts = read_corpus(data, out, settings.n_pieces, settings.n_held, settings.seed)
    corpus = {name: some.to(settings.device) for name, some in texts.items()}
    network = initial_encoder(settings.model, len(vocabulary), settings.seed).to(settings.device)
    figures: dict[str, Any] = {
        "settings": asdict(settings),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    before = out / "pretrained.safetensors"
    if before.exists():
        network = load_encoder(before).network.to(settings.device)
    else:
        figures["pretraining"] = pretrain(network, corpus, settings)
        _save(network, vocabulary, before)
    candidates, weights = {}, []
    for seed in settings.seeds:
        begun = time.perf_counter()
        tuned = copy.deepcopy(network)
        finetune(tuned, corpus, settings, seed)
        weights.append({name: weight.detach().clone() for name, weight in tuned.state_dict().items()})
        candidates[f"seed {seed}"] = _rounded(tuned)
        if len(weights) > 1:
            candidates[f"mean of {len(weights)}"] = _rounded(_loaded(tuned, mean_of(weights)))
        if settings.limit and 2 * time.perf_counter() - begun - started > settings.limit:
            break
    held = {
        name: [accuracy(one, corpus[part]) for part in ("held_reviews", "held_sentences")]
        for name, one in candidates.items()
    }
    chosen = max(held, key=lambda name: sum(held[name]))
    say(f"held out: {held}; chosen: {chosen}")
    _save(candidates[chosen], vocabulary, out / "model.safetensors")
    figures |= {"held_out": held, "chosen": chosen, **evaluate(candidates[chosen], vocabulary, corpus)}
    # The other candidates are evaluated after the choice, to show how much the seed matters.
    figures["others"] = {
        name: [accuracy(one, corpus[part]) for part in ("test", "validation")] for name, one in candidates.items()
    }
    write_atomically(out / "figures.json", json.dumps(figures, indent=1) + "\n")
    say(json.dumps({name: figures[name] for name in ("test", "validation", "empty", "n_wrong", "others")}, indent=1))
    return figures


def evaluate(network: EncoderNetwork, vocabulary: WordPieces, corpus: dict[str, Texts]) -> dict[str, Any]:
    """Accuracy with its 95 % interval on both test sets, and the logit difference of every sanity sentence."""
    figures: dict[str, Any] = {}
    for name in ("test", "validation"):
        right = int(((differences(network, corpus[name]) > 0) == corpus[name].labels.cpu().numpy()).sum())
        figures[name] = {"right": right, "n": len(corpus[name]), "accuracy": right / len(corpus[name])}
        figures[name]["interval"] = wilson(right, len(corpus[name]))
    model = EncoderClassifier(network.cpu(), vocabulary, CLASSES)
    logits = model(["", *(text for text, _ in SENTENCES)])
    empty, *rest = (logits[:, 1] - logits[:, 0]).tolist()
    network.to(corpus["test"].flat.device)
    figures["empty"] = empty
    figures["sanity"] = [[text, label, round(x, 3)] for (text, label), x in zip(SENTENCES, rest, strict=True)]
    figures["n_wrong"] = sum((x > 0) != label for x, (_, label) in zip(rest, SENTENCES, strict=True))
    return figures


def _rounded(network: EncoderNetwork) -> EncoderNetwork:
    """With weights that the file can hold, in half precision: figures are measured on what is shipped."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(weight.half().float())
    return network.eval()


def _loaded(like: EncoderNetwork, weights: dict[str, torch.Tensor]) -> EncoderNetwork:
    network = copy.deepcopy(like)
    network.load_state_dict(weights)
    return network


def _save(network: EncoderNetwork, vocabulary: WordPieces, path: Path) -> None:
    save_encoder(EncoderClassifier(network, vocabulary, CLASSES), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("HEEDFUL_DATA", ".")), help="default: $HEEDFUL_DATA"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, help="pre-train for as many steps as fit")
    parser.add_argument("--limit", type=float, help="begin no seed that would end after so many seconds")
    parser.add_argument("--quick", action="store_true", help="a tiny model and a few steps, to try the program")
    given = parser.parse_args()
    settings = QUICK if given.quick else Settings()
    train(given.data, given.out, replace(settings, device=given.device, seconds=given.seconds, limit=given.limit))


if __name__ == "__main__":
    main()
