"""SAELens' side: its own trainer on the same rows, batch after batch. They are not shuffled, which costs it nothing."""

import warnings
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import torch
from sae_lens import (
    BatchTopKTrainingSAE,
    BatchTopKTrainingSAEConfig,
    JumpReLUTrainingSAE,
    JumpReLUTrainingSAEConfig,
    MatryoshkaBatchTopKTrainingSAE,
    MatryoshkaBatchTopKTrainingSAEConfig,
    StandardTrainingSAE,
    StandardTrainingSAEConfig,
    TopKTrainingSAE,
    TopKTrainingSAEConfig,
)
from sae_lens.config import SAETrainerConfig
from sae_lens.training.sae_trainer import SAETrainer

from benchmarks.features.side import Clock, Sizes, serve

Make = Callable[..., Any]


def sae_of(case: str, sizes: Sizes, d_e: int) -> Any:
    """SAELens' autoencoder of the same kind, with its defaults but for what the kinds must have in common."""
    kinds: dict[str, tuple[Make, Make, dict[str, Any]]] = {
        "relu": (
            StandardTrainingSAE,
            StandardTrainingSAEConfig,
            {"l1_coefficient": 5.0, "apply_b_dec_to_input": False},
        ),
        "topk": (TopKTrainingSAE, TopKTrainingSAEConfig, {"k": sizes.k}),
        "batchtopk": (BatchTopKTrainingSAE, BatchTopKTrainingSAEConfig, {"k": sizes.k}),
        "jumprelu": (
            JumpReLUTrainingSAE,
            JumpReLUTrainingSAEConfig,
            {"jumprelu_sparsity_loss_mode": "quadratic", "target_l0": sizes.k},
        ),
        "matryoshka": (
            MatryoshkaBatchTopKTrainingSAE,
            MatryoshkaBatchTopKTrainingSAEConfig,
            {"k": sizes.k, "matryoshka_widths": [*sizes.inner_widths, sizes.width]},
        ),
    }
    sae, config, settings = kinds[case.partition(",")[0]]
    return sae(config(d_in=d_e, d_sae=sizes.width, **settings))


def train(case: str, sizes: Sizes, clock: Clock) -> None:
    """One training; a step ends where the next batch is asked for."""
    warnings.filterwarnings("ignore")
    rows = torch.from_numpy(sizes.rows())

    def batches() -> Iterator[torch.Tensor]:
        for batch in cycle(rows.split(sizes.batch_size)):
            clock.tick()
            yield batch

    config = SAETrainerConfig(
        total_training_samples=sizes.n_steps * sizes.batch_size,
        train_batch_size_samples=sizes.batch_size,
        lr=1e-3,
        lr_end=1e-3,
    )
    SAETrainer(config, sae_of(case, sizes, rows.shape[1]), batches()).fit()


if __name__ == "__main__":
    serve(train)
