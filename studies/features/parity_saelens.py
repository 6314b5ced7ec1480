"""SAELens itself beside ours: the same weights and rows, then activations, loss and gradients of both.

    PYTHON -m studies.features.parity_saelens

PYTHON belongs to an environment that has SAELens 6.54 and what heedful needs. Every line of the table is one number of
both sides (of a tensor its length) and the largest difference between them, divided by the largest number of SAELens',
in double and in single precision. The program ends with 1 if one is above 1e-5. The tests cannot install SAELens; they
compare with definitions in NumPy (`tests/features/autoencoder`).

Deliberate differences, which the comparison takes into account:
- SAELens' activations of `standard` and `jumprelu` do not contain the length of the decoder's row; ours do, as its
  other kinds' do. They are compared after multiplication by it.
- Its `standard` and `jumprelu` do not revive dead features as TopK does; ours do unless revive=0, which is compared.
- SAELens never keeps the decoder's rows at length 1. norms="free" is its way. Of norms="unit", our default except for
  `relu`, the gradient of W_dec has no part along the row; SAELens' is compared without that part.
- SAELens tracks the threshold of its batch kinds during training, 1 % a step; ours is measured after it. What one step
  of SAELens adds is compared with the smallest activation that ours keeps.
- SAELens has the matryoshka of the paper: order="index", inner="joint", passes=0, first_k=1. Our defaults go beyond it.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

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
from sae_lens.saes.sae import TrainStepInput
from torch import Tensor

from heedful.features.autoencoder import Autoencoder, Weights
from heedful.features.autoencoder.batchtopk import BatchTopK
from heedful.features.autoencoder.jumprelu import JumpRelu
from heedful.features.autoencoder.matryoshka import Matryoshka
from heedful.features.autoencoder.relu import Relu
from heedful.features.autoencoder.topk import RowTopK

D_E, WIDTH, N_ROWS, K = 32, 256, 400, 8
LIMIT = 1e-5


@final
@dataclass(frozen=True)
class Case:
    """One kind with its settings, on both sides."""

    kind: Autoencoder
    theirs: Callable[..., Any]
    coefficient: str = ""
    """SAELens' name of the penalty."""
    n_dead: int = 0

    @property
    def scaled(self) -> bool:
        """Whether SAELens' activations already contain the length of the decoder's row."""
        return not self.coefficient


def standard(**shared: Any) -> Any:
    return StandardTrainingSAE(StandardTrainingSAEConfig(apply_b_dec_to_input=False, **shared))


def topk(**shared: Any) -> Any:
    return TopKTrainingSAE(TopKTrainingSAEConfig(k=K, **shared))


def topk_unit(**shared: Any) -> Any:
    return TopKTrainingSAE(TopKTrainingSAEConfig(k=K, rescale_acts_by_decoder_norm=False, **shared))


def batchtopk(**shared: Any) -> Any:
    return BatchTopKTrainingSAE(BatchTopKTrainingSAEConfig(k=K, **shared))


def jumprelu(**shared: Any) -> Any:
    settings = {"jumprelu_init_threshold": 0.5, "jumprelu_bandwidth": 0.4, "target_l0": K, **shared}
    return JumpReLUTrainingSAE(JumpReLUTrainingSAEConfig(**settings))


def jumprelu_target(**shared: Any) -> Any:
    return jumprelu(jumprelu_sparsity_loss_mode="quadratic", **shared)


def matryoshka(**shared: Any) -> Any:
    settings = {"k": K, "matryoshka_widths": [8, 32, 128, WIDTH], **shared}
    return MatryoshkaBatchTopKTrainingSAE(MatryoshkaBatchTopKTrainingSAEConfig(**settings))


OWN_JUMP = JumpRelu(k=K, first_threshold=0.5, bandwidth=0.4, norms="free", revive=0.0, penalty_of="count", sparsity=0.1)
PAPER = Matryoshka(k=K, widths="8,32,128", order="index", inner="joint", passes=0, first_k=1.0, norms="free")
CASES = {
    "relu": Case(Relu(sparsity=0.1, revive=0.0), standard, "l1"),
    "topk": Case(RowTopK(k=K, norms="free"), topk),
    "topk, 5 dead": Case(RowTopK(k=K, norms="free"), topk, n_dead=5),
    "topk, 100 dead": Case(RowTopK(k=K, norms="free"), topk, n_dead=100),
    "topk, unit, 100 dead": Case(RowTopK(k=K), topk_unit, n_dead=100),
    "batchtopk": Case(BatchTopK(k=K, norms="free"), batchtopk),
    "batchtopk, 100 dead": Case(BatchTopK(k=K, norms="free"), batchtopk, n_dead=100),
    "jumprelu, count": Case(OWN_JUMP, jumprelu, "l0"),
    "jumprelu, target": Case(replace(OWN_JUMP, penalty_of="target"), jumprelu_target, "l0"),
    "matryoshka": Case(PAPER, matryoshka),
    "matryoshka, 100 dead": Case(PAPER, matryoshka, n_dead=100),
}


def random_weights(kind: Autoencoder) -> Weights:
    """Weights that nobody trained; the rows of W_dec have any length, unless they are kept at 1."""
    rng = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    W_dec = torch.nn.functional.normalize(normal(WIDTH, D_E), dim=1)
    if kind.norms == "free":
        W_dec *= 0.5 + torch.rand(WIDTH, 1, generator=rng)
    trained, tracked = kind.initial(W_dec)
    trained = {name: value + 0.2 * torch.rand(WIDTH, generator=rng) for name, value in trained.items()}
    W_enc = W_dec + 0.1 * normal(WIDTH, D_E)
    return Weights(W_enc, 0.2 * normal(WIDTH), W_dec, 0.3 * normal(D_E), torch.zeros(WIDTH), trained, tracked)


def our_side(case: Case, weights: Weights, x: Tensor, dead: Tensor | None) -> dict[str, Tensor]:
    """Activations, loss and gradients as heedful computes them."""
    for weight in weights.parameters.values():
        weight.requires_grad_(True)
    loss, code = case.kind.loss(x, weights, 1.0, None if dead is None else dead.nonzero()[:, 0])
    loss.backward()
    numbers = {"pre-activations": code.pre, "activations": code.active, "reconstruction": code.reconstruction}
    numbers |= {"loss": loss, **{f"gradient {name}": weight.grad for name, weight in weights.parameters.items()}}
    return numbers | ({"smallest kept": code.smallest[0]} if code.smallest else {})


def their_side(case: Case, weights: Weights, x: Tensor, dead: Tensor | None) -> dict[str, Tensor]:
    """The same of SAELens."""
    dtype = str(x.dtype).removeprefix("torch.")
    sae = case.theirs(d_in=D_E, d_sae=WIDTH, dtype=dtype)
    with torch.no_grad():
        for name, weight in weights.parameters.items():
            getattr(sae, name).copy_(weight.T if name == "W_enc" else weight)
    coefficients = {case.coefficient: case.kind.sparsity} if case.coefficient else {}  # type: ignore[attr-defined]
    step = sae.training_forward_pass(TrainStepInput(x, coefficients, dead, 0, False))
    step.loss.backward()
    lengths = 1.0 if case.scaled else weights.W_dec.norm(dim=1)
    gradients = {f"gradient {name}": getattr(sae, name).grad for name in weights.parameters}
    gradients["gradient W_enc"] = gradients["gradient W_enc"].T
    if case.kind.norms == "unit":
        along, W_dec = gradients["gradient W_dec"], weights.W_dec
        gradients["gradient W_dec"] = along - (along * W_dec).sum(dim=1, keepdim=True) * W_dec
    numbers = {
        "pre-activations": step.hidden_pre * lengths,
        "activations": step.feature_acts * lengths,
        "reconstruction": step.sae_out,
        "loss": step.loss,
        **gradients,
    }
    return numbers | (
        {"smallest kept": sae.topk_threshold / sae.cfg.topk_threshold_lr} if hasattr(sae, "topk_threshold") else {}
    )


def both_sides(case: Case, dtype: torch.dtype) -> dict[str, tuple[float, float, float]]:
    """Both sides' numbers and the difference between them."""
    rng = torch.Generator().manual_seed(0)
    x = (torch.randn(N_ROWS, D_E, generator=rng) + 0.5).to(dtype)
    dead = torch.zeros(WIDTH, dtype=torch.bool)
    dead[torch.randperm(WIDTH, generator=rng)[: case.n_dead]] = True
    common = random_weights(case.kind)
    common.b_enc[dead] -= 9.0

    def fresh() -> Weights:
        """The weights in this precision; both sides write into them."""
        moved = {name: getattr(common, name).to(dtype) for name in ("W_enc", "b_enc", "W_dec", "b_dec", "quiet")}
        moved = {name: value.clone() for name, value in moved.items()}
        trained = {name: value.to(dtype).clone() for name, value in common.trained.items()}
        return Weights(**moved, trained=trained, tracked={name: v.clone() for name, v in common.tracked.items()})

    revived = dead if case.n_dead else None
    ours, theirs = our_side(case, fresh(), x, revived), their_side(case, fresh(), x, revived)
    rows = {}
    for name, mine in ours.items():
        a, b = mine.detach().double().squeeze(), theirs[name].detach().double().squeeze()
        rows[name] = float(a.norm()), float(b.norm()), difference(a, b)
    return rows


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, relative to the largest number of theirs."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-300))


def main() -> int:
    """Prints the table; 1 if the sides differ."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    header = f"{'kind':22}{'what':19}{'heedful':>14}{'SAELens':>14}{'difference':>13}{'single':>10}"
    print(f"{header}\n{'-' * len(header)}")
    worst = 0.0
    for name, case in CASES.items():
        rows, single = both_sides(case, torch.float64), both_sides(case, torch.float32)
        for what, (mine, theirs, apart) in rows.items():
            print(f"{name:22}{what:19}{mine:14.8g}{theirs:14.8g}{apart:13.1e}{single[what][2]:10.1e}")
            worst = max(worst, apart, single[what][2])
    print(f"largest difference {worst:.1e}; {'equal' if worst <= LIMIT else 'DIFFERENT'} up to {LIMIT:g}")
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
