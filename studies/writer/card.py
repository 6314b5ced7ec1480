"""Puts a trained model into the package, with its card: `python -m studies.writer.card runs/writer`.

The card says what the files of the run say; nothing in it is written by hand.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import torch

import heedful
from heedful.models.attention_hook import still
from heedful.models.language.card import ratio_of_sums
from heedful.models.language.file import load_gpt2, save_gpt2, vocabulary_of_text
from heedful.models.language.gpt2 import Gpt2Config, network_with
from heedful.models.language.writer import Writer
from heedful.run_folder import read_tensors, write_atomically
from studies.writer.corpus import read_reviews
from studies.writer.prepare import N_HELD

HOME = Path(heedful.__file__).parent / "models" / "checkpoints"
PROMPTS = ("This film was", "I have never seen", "The actors", "")
_MOST = 14_000_000


def bundle(folder: Path, texts: tuple[str, ...], home: Path = HOME) -> str:
    """Writes the model and its card; returns the card. `texts` are the test reviews, in the order of the losses."""
    figures, about = (json.loads((folder / name).read_text()) for name in ("figures.json", "corpus.json"))
    vocabulary = vocabulary_of_text(json.loads((folder / "vocabulary.json").read_text()))
    weights, _ = read_tensors(folder / "weights.safetensors")
    path = home / "writer.safetensors"
    save_gpt2(Writer(network_with(Gpt2Config(**figures["config"]), weights), vocabulary, True), path)
    if path.stat().st_size > _MOST:
        raise ValueError(f"The model takes {path.stat().st_size:,} bytes; the repository has room for {_MOST:,}.")
    test, _ = read_tensors(folder / "test.safetensors")
    sizes = {
        "token": test["n_tokens"].numpy(),
        "word": np.array([len(text.split()) for text in texts]),
        "byte": np.array([len(text.encode()) for text in texts]),
    }
    rates = {name: ratio_of_sums(test["losses"].numpy(), n) for name, n in sizes.items()}
    card = _card(figures, about, rates, path)
    write_atomically(home / "writer.md", card)
    return card


@torch.no_grad()
def sample(model: Writer, prompt: str, n: int, seed: int, p: float = 0.9) -> str:
    """A continuation by nucleus sampling."""
    rng, ids = np.random.default_rng(seed), []
    with still(model.network):
        prefix = model.read(model.encode(prompt))
        for _ in range(min(n, model.network.config.T_max - prefix.n_read)):
            share = prefix.logits[0].double().softmax(dim=0).numpy()
            order = np.argsort(-share)
            kept = order[: int((share[order].cumsum() < p).sum()) + 1]
            ids.append(int(rng.choice(kept, p=share[kept] / share[kept].sum())))
            if ids[-1] in model.end_ids:
                break
            prefix = model.go_on(prefix, torch.tensor(ids[-1:]))
    return model.spell(ids)


def _card(
    figures: Mapping[str, Any], about: Mapping[str, Any], rates: Mapping[str, tuple[float, float, float]], path: Path
) -> str:
    model = load_gpt2(path)
    config, n_weights = model.network.config, sum(weight.numel() for weight in model.network.parameters())
    chosen = figures["candidates"][figures["chosen"]]
    recipe, epochs = chosen["recipe"], chosen["epochs"]
    others = "; ".join(
        f"dropout {name}: {one['held_out_loss']:.4f} nats a token" for name, one in figures["candidates"].items()
    )
    best = min(epochs, key=lambda epoch: epoch[2])
    samples = "\n".join(
        f"- **{prompt or '(nothing)'}**{sample(model, prompt, 60, 0).replace(chr(10), ' ')}" for prompt in PROMPTS
    )
    per_token, per_word, bits = (
        _shown(exp, rates["token"]),
        _shown(exp, rates["word"]),
        _shown(lambda nats: nats / log(2), rates["byte"], 4),
    )
    train, test = about["train"], about["test"]
    return f"""# Model card

- Model: GPT-2 that writes film reviews in English, for demonstrations of decoding and attribution offline. \
{config.depth} layers, {config.n_heads} heads, d_e {config.d_e}, d_hidden {config.d_hidden}, at most {config.T_max} \
tokens; {config.n_tokens:,} tokens of byte-level byte-pair encoding. {n_weights:,} weights in half precision
- Command: `python -m studies.writer.prepare`, then `python -m studies.writer --device cuda`, seed {recipe["seed"]}, \
on one H200. A GPU does not repeat its last bits, so another run gives other weights and about the same figures
- Data: IMDB (Maas et al., 2011), the 25,000 training and 50,000 unlabelled reviews, `<br />` as line breaks. \
{about["n_tested"]} of them, whose text is also that of a test review, are left out; {about["held_out"]["n_texts"]:,} \
are set apart to choose. Trained on {train["n_texts"]:,} reviews of {train["n_ids"]:,} tokens; each stands behind \
`<|endoftext|>`, which also ends a text
- Training: {len(epochs)} epochs of AdamW, learning rate {recipe["learning_rate"]} along a cosine, weight decay \
{recipe["weight_decay"]}, {recipe["batch_size"]} windows of {config.T_max} tokens a step, dropout {recipe["dropout"]}; \
{chosen["seconds"]:.0f} seconds. The weights are those of epoch {best[0] + 1}, the best on the reviews set apart
- Chosen on the reviews set apart: **dropout {figures["chosen"]}**. {others}
- On the {test["n_texts"]:,} distinct test reviews, as shipped, the end of each review included: perplexity per token \
**{per_token}**, per word **{per_word}**, **{bits}** bits per byte (95 % confidence intervals over \
reviews). A review longer than {config.T_max} tokens is read in windows that overlap by half
- Limits: reviews of films in English only; sentences are fluent, what they say is invented and soon contradicts \
itself; it repeats the prejudices and coarse words of its data; it must not be used to write reviews for others
- Licence: that of the package. The data set is published for research, with a request to cite it
- Fingerprint, stored with every explanation: `{model.fingerprint}`
- SHA-256 of writer.safetensors: `{hashlib.sha256(path.read_bytes()).hexdigest()}`

Samples, the first ones drawn (nucleus 0.9, seed 0, at most 60 tokens):

{samples}
"""


def _shown(scale: Any, rates: tuple[float, float, float], digits: int = 2) -> str:
    value, low, high = (f"{scale(number):.{digits}f}" for number in rates)
    return f"{value} [{low}, {high}]"


def main() -> None:
    data = Path(os.environ.get("HEEDFUL_DATA", "."))
    sys.stdout.write(bundle(Path(sys.argv[1]), read_reviews(data, N_HELD, 0).test))


if __name__ == "__main__":
    main()
