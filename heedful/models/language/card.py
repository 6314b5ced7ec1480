"""The card of a GPT-2 that was trained on a data set: its perplexity per token, with a confidence interval."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, isnan, nan
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int

from heedful.datasets import Dataset
from heedful.models.language.file import load_gpt2, save_gpt2
from heedful.models.language.training import LanguageEpoch, measure_losses, plain_texts, token_ids
from heedful.models.language.writer import Writer
from heedful.models.training import about_data, new_examples
from heedful.run_folder import write_atomically
from heedful.statistics.intervals import student_97_5


@final
@dataclass(frozen=True)
class Gpt2Card:
    """The model card of a language model."""

    command: str
    dataset: str
    best_epoch: int
    validation_perplexity: float
    n_test: int
    perplexity: tuple[float, float, float]
    """Per token, the end of every text included, with its 95 % confidence interval over texts."""
    fingerprint: str
    sha256: str

    @property
    def summary(self) -> str:
        """The result on the test split."""
        value, low, high = self.perplexity
        interval = "" if isnan(low) else f" [{low:.2f}, {high:.2f}]"
        return "test perplexity not measured" if isnan(value) else f"test perplexity {value:.2f}{interval} per token"

    def as_markdown(self, config: Mapping[str, object]) -> str:
        """The card as Markdown."""
        settings = ", ".join(f"{name} {value}" for name, value in config.items())
        return (
            f"# Model card\n\n- Model: GPT-2, a language model, {settings}\n"
            f"- Command: `{self.command}`\n- Data: {self.dataset}; the labels are not used\n"
            f"- Best epoch on the validation split: epoch {self.best_epoch}, perplexity "
            f"{self.validation_perplexity:.2f} per token\n"
            f"- As shipped, on the {self.n_test:,} distinct test texts that are not in the training half, the end of "
            f"each text included: **{self.summary}** (95 % confidence interval over texts)\n"
            f"- Fingerprint, stored with every explanation: `{self.fingerprint}`\n"
            f"- SHA-256 of model.safetensors: `{self.sha256}`\n"
        )


def publish_gpt2(
    model: Writer, dataset: Dataset, epochs: Sequence[LanguageEpoch], command: str, folder: Path
) -> Gpt2Card:
    """Writes the model and its card to the folder; the perplexity is that of the written file."""
    path, best = folder / "model.safetensors", min(epochs, key=lambda epoch: epoch.held_out_loss)
    save_gpt2(model, path)
    shipped = load_gpt2(path)
    ids = token_ids(shipped.vocabulary, plain_texts(new_examples(dataset)))
    shipped.network.to(model.network.W_e.device)
    value, low, high = ratio_of_sums(*measure_losses(shipped.network, ids, shipped.vocabulary.special[0]))
    card = Gpt2Card(
        command=command,
        dataset=about_data(dataset),
        best_epoch=best.number + 1,
        validation_perplexity=best.perplexity,
        n_test=len(ids),
        perplexity=(exp(value), exp(low), exp(high)),
        fingerprint=shipped.fingerprint,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    write_atomically(folder / "card.md", card.as_markdown(asdict(shipped.network.config)))
    return card


def ratio_of_sums(totals: Float[np.ndarray, "text"], sizes: Int[np.ndarray, "text"]) -> tuple[float, float, float]:
    """Σ totals / Σ sizes and its 95 % confidence interval over texts (delta method); NaN where there are too few."""
    if not len(totals):
        return nan, nan, nan
    ratio = totals.sum() / sizes.sum()
    if len(totals) < 2:
        return float(ratio), nan, nan
    half = (
        student_97_5(float(len(totals) - 1))
        * (totals - ratio * sizes).std(ddof=1)
        / np.sqrt(len(totals))
        / sizes.mean()
    )
    return float(ratio), float(ratio - half), float(ratio + half)
