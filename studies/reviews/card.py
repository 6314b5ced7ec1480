"""Puts a trained model into the package, with its card: `python -m studies.reviews.card runs/reviews`.

The card says what figures.json says; nothing in it is written by hand.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import heedful
from heedful.models.encoder.file import load_encoder
from heedful.run_folder import write_atomically
from studies.reviews.sanity import SENTENCES

HOME = Path(heedful.__file__).parent / "models" / "checkpoints"


def bundle(folder: Path, home: Path = HOME) -> str:
    """Copies the model and writes its card; returns the card."""
    figures, content = json.loads((folder / "figures.json").read_text()), (folder / "model.safetensors").read_bytes()
    if len(content) > 16_000_000:
        raise ValueError(f"The model takes {len(content):,} bytes; the repository has room for 16,000,000.")
    write_atomically(home / "reviews.safetensors", content)
    card = _card(figures, content, home / "reviews.safetensors")
    write_atomically(home / "reviews.md", card)
    return card


def _card(figures: dict[str, Any], content: bytes, path: Path) -> str:
    model, settings = load_encoder(path), figures["settings"]
    config, n_weights = model.network.config, sum(weight.numel() for weight in model.network.parameters())
    logits = model([text for text, _ in SENTENCES])
    sanity = list(zip(SENTENCES, (logits[:, 1] - logits[:, 0]).tolist(), strict=True))
    n_wrong = sum((difference > 0) != label for (_, label), difference in sanity)
    # A run that resumes from a pre-trained network does not know how long that took.
    before = figures.get("pretraining", {"n_steps": "some", "seconds": "?", "last": float("nan")})
    verdicts = settings.get("verdicts_a_step")
    texts = f"{settings['reviews_a_step']} reviews and {settings['phrases_a_step']} phrases"
    late = " (added after a first model had two sanity sentences wrong)"
    texts += f" and {verdicts} short first or last sentences of reviews{late}" if verdicts else ""
    held = "; ".join(f"{name}: {a:.2%} and {b:.2%}" for name, (a, b) in figures["held_out"].items())
    others = "; ".join(f"{name}: {a:.2%} and {b:.2%}" for name, (a, b) in figures["others"].items())
    return f"""# Model card

- Model: transformer encoder over word pieces, for short sentences and long reviews of films in English. \
{config.depth} layers with norms before their parts, {config.n_heads} heads, d_e {config.d_e}, d_hidden \
{config.d_hidden}, {len(model.vocabulary):,} pieces, at most {config.T_max} tokens; the logits are read from the mean \
of all tokens. {n_weights:,} weights in half precision
- Command: `python -m studies.reviews --out runs/reviews --device cuda`, seed {settings["seed"]}, on one H200. A GPU \
does not repeat its last bits, so another run gives other weights and about the same figures
- Data: IMDB (Maas et al., 2011): the training reviews less {settings["n_held"]:,} that are held out, and the 50,000 \
unlabelled ones. SST (Socher et al., 2013): training sentences and phrases, neutral ones too. Test reviews and \
validation sentences are in neither vocabulary nor training; no validation sentence of SST-2 is among the training \
phrases. The 266 unlabelled and 123 training reviews whose text is also that of a test review are left out
- Pre-training: {before["n_steps"]} steps of {settings["rows_a_step"]} × {config.T_max} tokens, \
{settings["masked"]:.0%} masked; last loss {before["last"]:.2f}; {before["seconds"]} seconds
- Fine-tuning: {settings["n_epochs"]} epochs of IMDB, {texts} a step; {settings["word_dropout"]:.0%} of the words are \
[MASK], of one text in eight any share of them; a text without words has the target ½
- Chosen on held-out training texts (reviews and sentences of SST): **{figures["chosen"]}**. {held}
- Test accuracy as shipped: **{_share(figures["test"])}** on all 25,000 reviews of IMDB, \
**{_share(figures["validation"])}** on the 872 validation sentences of SST-2 (95 % confidence intervals)
- The same two of every candidate, measured after the choice: {others}
- Logit difference of the empty text: {figures["empty"]:+.3f}
- Sanity sentences, written before the training: {n_wrong} of {len(sanity)} wrong (below)
- Limits: films in English only; of a longer text only the first third and the last two thirds of {config.T_max - 2} \
tokens are read; irony and rare idioms are often misread
- Licence: that of the package. Both data sets are published for research, with a request to cite them
- Fingerprint, stored with every explanation: `{model.fingerprint}`
- SHA-256 of reviews.safetensors: `{hashlib.sha256(content).hexdigest()}`

| sanity sentence | is | logit difference | |
| --- | --- | --- | --- |
{chr(10).join(_row(text, label, difference) for (text, label), difference in sanity)}
"""


def _share(figure: dict[str, Any]) -> str:
    low, high = figure["interval"]
    return f"{figure['accuracy']:.2%} [{low:.2%}, {high:.2%}]"


def _row(text: str, label: int, difference: float) -> str:
    wrong = "" if (difference > 0) == label else "wrong"
    return f"| {text} | {('negative', 'positive')[label]} | {difference:+.2f} | {wrong} |"


if __name__ == "__main__":
    print(bundle(Path(sys.argv[1])))
