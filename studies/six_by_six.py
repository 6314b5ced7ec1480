"""Trains the model of the paper's Appendix E: six layers of six heads that call film reviews negative or positive.

    python -m studies.six_by_six --data DIR --out runs/six-by-six [--device cuda] [--quick]

The paper gives 82.22 % and no more than the number of layers and heads; skip connections, norms, a ReLU between layers
and all sizes are ours. `heedful.load("runs/six-by-six")` loads it. docs/certainty.md and docs/disagreement.md
were measured on it; `heedful reproduce appendix-e` trains another in less time.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding

from heedful.models.training_loop import Schedule
from heedful.models.transformer import Transformer, TransformerConfig, TransformerNetwork, initial_network
from heedful.models.transformer_file import save_transformer
from heedful.models.vocabulary import CLS, UNK, Vocabulary, build_vocabulary, split_plain
from studies.families.training import (
    TrainingTask,
    describe_files,
    parse_arguments,
    read_columns,
    say,
    train_model,
    write_card,
)

FILES = ("imdb/train.parquet", "imdb/test.parquet")
LABELS = ("negative", "positive")


@final
@dataclass(frozen=True)
class Settings:
    """The model and how to train it; `most_texts` limits each file for a quick run."""

    model: TransformerConfig = field(
        default=TransformerConfig(depth=6, skip=True, norm=True, nonlinearity="relu", positional="authors")
    )
    schedule: Schedule = field(default=Schedule(n_epochs=3, batch_size=64, learning_rate=6e-4, warmup_share=0.1))
    min_count: int = 2
    n_validation: int = 2_000
    most_texts: int | None = None
    seed: int = 0
    device: str = "cpu"


QUICK = Settings(
    model=TransformerConfig(
        depth=2, n_heads=2, T_max=32, d_e=16, d_att=8, d_out=8, d_hidden=16, skip=True, norm=True, nonlinearity="relu"
    ),
    schedule=Schedule(n_epochs=1, batch_size=16, learning_rate=1e-3, warmup_share=0.05),
    n_validation=16,
    most_texts=64,
)


def train(data: Path, out: Path, settings: Settings) -> dict[str, object]:
    """Trains, or resumes; leaves model and card in the folder, and returns the figures of the card."""
    known, test = (read_columns(data / name, "text", "label", most=settings.most_texts) for name in FILES)
    files = describe_files(dict(zip(FILES, (known, test), strict=True)))
    texts, labels = known
    order = np.random.default_rng(settings.seed).permutation(len(texts))
    kept, held = order[settings.n_validation :], order[: settings.n_validation]
    vocabulary = build_vocabulary([texts[index] for index in kept], settings.min_count)
    network = initial_network(settings.model, len(vocabulary), settings.seed).to(settings.device)

    def numbers(some: Sequence[str]) -> Int[Tensor, "batch token"]:
        return numbered(vocabulary, some, settings)

    x, x_held = numbers([texts[i] for i in kept]), numbers([texts[i] for i in held])
    y, y_held = (torch.tensor([labels[i] for i in part], device=settings.device) for part in (kept, held))
    say(f"six by six: {len(x)} texts, {len(vocabulary)} words")

    def loss(batch: Int[Tensor, "batch"]) -> Tensor:
        return cross_entropy(logits(network, x[batch]).float(), y[batch])

    def accuracy() -> float:
        return right(network, x_held, y_held).float().mean().item()

    task = TrainingTask("six", network, len(x), loss, accuracy, settings.seed, {"data": files, **asdict(settings)})
    epochs = train_model(settings.schedule, task, out)
    with torch.no_grad():
        # The file holds half precision, so the figures of the card are measured with what it can hold.
        for weight in network.parameters():
            weight.copy_(weight.half().float())
        hits = right(network, numbers(test[0]), torch.tensor(test[1], device=settings.device)).float()
        figures = {
            "validation_accuracy": accuracy(),
            "n_test": len(hits),
            "test_accuracy": hits.mean().item(),
        }
    save_transformer(Transformer(network, vocabulary, LABELS), out / "model.safetensors")
    write_card(out, files, settings, figures, epochs)
    return figures


def numbered(vocabulary: Vocabulary, texts: Sequence[str], settings: Settings) -> Int[Tensor, "batch token"]:
    """Texts as the model reads them: [cls], words, and [unk] up to T_max."""
    rows = np.full((len(texts), settings.model.T_max), UNK)
    for row, text in zip(rows, texts, strict=True):
        ids = np.append(CLS, vocabulary.ids(split_plain(text)))[: settings.model.T_max]
        row[: len(ids)] = ids
    return torch.from_numpy(rows).to(settings.device)


def logits(network: TransformerNetwork, ids: Int[Tensor, "batch token"]) -> Tensor:
    return network(embedding(ids, network.W_e) + network.W_p, torch.zeros_like(ids[:, 0]), None)


def right(network: TransformerNetwork, x: Int[Tensor, "batch token"], y: Int[Tensor, "batch"]) -> Tensor:
    """Of every review, whether the larger logit is the label's."""
    return torch.cat([logits(network, part).argmax(dim=1) for part in x.split(256)]) == y


def main() -> None:
    arguments = parse_arguments(__doc__)
    train(arguments.data, arguments.out, replace(QUICK if arguments.quick else Settings(), device=arguments.device))


if __name__ == "__main__":
    main()
