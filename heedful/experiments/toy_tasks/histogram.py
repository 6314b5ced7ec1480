"""The histogram task: count how often each token of a sequence occurs in it; and the small network that learns it.

Reference: Cui, Behrens, Krzakala & Zdeborová, 2024, arXiv:2402.03902; Weiss, Goldberg & Yahav, 2021, arXiv:2106.06981.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Literal, final

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm, relu

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.side_by_side import Parameters
from heedful.experiments.toy_tasks.token_dependence import token_dependence

Weights = Literal["tied", "untied"]
Restriction = Literal["semantic", "positional", "none"]
"""The input of queries and keys: only tokens, only positions, or both."""

LETTERS = "DATIBCEFGHJKLMNOPQRSUVWXYZ"
"""Token t is written as the letter at t; the lecture's example needs the first four."""

PENALTY = 1e-5
"""λ. The lecture says only that the risk is regularised: so large that it is about as large as the loss at the end, and
so small that counts are still right."""
_N_MAPS = 1_000


@final
@dataclass(frozen=True)
class Sizes:
    """The published sizes. "tied" is the lecture's W_q = W_k and W_v = I; "untied", all three free, the authors'."""

    length: int = 10
    n_tokens: int = 15
    width: int = 64
    n_hidden: int = 128
    weights: Weights = "tied"

    def __post_init__(self) -> None:
        if self.width % 2 or not 2 <= self.n_tokens <= len(LETTERS):
            raise BadInput(
                f"width must be even and n_tokens 2 to {len(LETTERS)}; {self.width} and {self.n_tokens} were given."
            )


@final
@dataclass(frozen=True)
class Examples:
    """Sequences and, at each position, how often its token occurs."""

    tokens: Int[Tensor, "batch token"]
    counts: Int[Tensor, "batch token"]

    def to(self, device: str) -> "Examples":
        """The same examples on a device."""
        return Examples(self.tokens.to(device), self.counts.to(device))

    def first(self, n: int) -> "Examples":
        """The first n examples."""
        return Examples(self.tokens[:n], self.counts[:n])

    def __len__(self) -> int:
        return len(self.tokens)


def occurrences(tokens: Int[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
    """How often the token at each position occurs in its sequence, itself included."""
    return (tokens[:, :, None] == tokens[:, None, :]).sum(dim=-1)


def examples(sizes: Sizes, n_draws: int, seed: int) -> tuple[Examples, Examples]:
    """Uniform sequences without duplicates, in a random order: 70 % to train on, 30 % to test on."""
    rng = torch.Generator().manual_seed(seed)
    drawn = torch.randint(sizes.n_tokens, (n_draws, sizes.length), generator=rng).unique(dim=0)
    drawn = drawn[torch.randperm(len(drawn), generator=rng)]
    n_train = len(drawn) * 7 // 10
    parts = drawn[:n_train], drawn[n_train:]
    return Examples(parts[0], occurrences(parts[0])), Examples(parts[1], occurrences(parts[1]))


def from_letters(text: str) -> Int[Tensor, "batch token"]:
    """One sequence written in `LETTERS`, as a batch of one."""
    return torch.tensor([[LETTERS.index(letter) for letter in text]])


def in_letters(tokens: list[int]) -> str:
    """The sequence in `LETTERS`."""
    return "".join(LETTERS[token] for token in tokens)


def initial(sizes: Sizes, seed: int) -> Parameters:
    """Initial weights as in `torch.nn`: N(0, 1) for embeddings, U(±1/√inputs) for matrices; biases are zero."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(n_out: int, n_in: int) -> Tensor:
        return (2 * torch.rand(n_out, n_in, generator=rng) - 1) / sqrt(n_in)

    half, n_classes = sizes.width // 2, sizes.length + 1
    drawn = {
        "W_e": torch.randn(sizes.n_tokens, half, generator=rng),
        "W_p": torch.randn(sizes.length, half, generator=rng),
        "W_q": uniform(sizes.width, sizes.width),
        "W_1": uniform(sizes.n_hidden, sizes.width),
        "b_1": torch.zeros(sizes.n_hidden),
        "W_2": uniform(n_classes, sizes.n_hidden),
        "b_2": torch.zeros(n_classes),
    }
    if sizes.weights == "untied":
        drawn |= {name: uniform(sizes.width, sizes.width) for name in ("W_k", "W_v")}
    return drawn


def sight(sizes: Sizes, restriction: Restriction) -> Float[Tensor, "d_e"]:
    """1 for the coordinates that queries and keys use, 0 for the others; stored among the weights as "sight"."""
    half = sizes.width // 2
    tokens, positions = float(restriction != "positional"), float(restriction != "semantic")
    return torch.cat([torch.full((half,), tokens), torch.full((half,), positions)])


def lifted(
    sizes: Sizes, parameters: Mapping[str, Tensor], restriction: Restriction, noise: float, seed: int
) -> Parameters:
    """The weights of one run without its restriction, with a little noise added to every parameter.

    Weights of the restricted coordinates had no effect, so they start at zero.
    """
    rng = torch.Generator().manual_seed(seed)
    seen = sight(sizes, restriction)
    moved = {}
    for name, tensor in parameters.items():
        kept = tensor.cpu() * seen if name in ("W_q", "W_k") else tensor.cpu()
        moved[name] = (kept + noise * torch.randn(kept.shape, generator=rng)).to(tensor.device)
    return moved


def vectors(parameters: Mapping[str, Tensor], tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token d_e"]:
    """Each token's vector: its embedding in the first half, its position's in the second."""
    W_e = parameters["W_e"]
    # A product with one-hot vectors: its gradient is summed in one order, that of indexing is not on every device.
    chosen = (tokens[..., None] == torch.arange(len(W_e), device=W_e.device)).to(W_e.dtype)
    of_tokens = chosen @ W_e
    return torch.cat([of_tokens, parameters["W_p"].expand_as(of_tokens)], dim=-1)


def attention(
    parameters: Mapping[str, Tensor],
    of_queries: Float[Tensor, "batch query d_e"],
    of_keys: Float[Tensor, "batch key d_e"],
) -> Float[Tensor, "batch query key"]:
    """α = softmax(e W_qᵀ W_k eᵀ / √d), over the coordinates that queries and keys use."""
    W_q, seen = parameters["W_q"], parameters["sight"]
    q, k = (of_queries * seen) @ W_q.T, (of_keys * seen) @ parameters.get("W_k", W_q).T
    return (einsum(q, k, "batch query d_att, batch key d_att -> batch query key") / sqrt(q.shape[-1])).softmax(dim=-1)


def predict_counts(
    parameters: Mapping[str, Tensor], tokens: Int[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token class"], Float[Tensor, "batch query key"]]:
    """Logits of the counts and the attention map of every sequence, lecture 9.4.

        logits_i = W_2 relu(W_1 LN(Σ_j α_ij W_v e_j) + b_1) + b_2

    There is no residual connection, and the layer norm has no gain and shift, which W_1 and b_1 would absorb.
    """
    e = vectors(parameters, tokens)
    alpha = attention(parameters, e, e)
    v = e @ parameters["W_v"].T if "W_v" in parameters else e
    pooled = layer_norm(alpha @ v, v.shape[-1:])
    hidden = relu(pooled @ parameters["W_1"].T + parameters["b_1"])
    return hidden @ parameters["W_2"].T + parameters["b_2"], alpha


def crossed(parameters: Mapping[str, Tensor], tokens: Int[Tensor, "batch token"]) -> Float[Tensor, "batch query key"]:
    """Attention maps whose queries come from one sequence and whose keys come from the one before it.

    Within one sequence, the attention of a position to itself may be due to the position or to the token. With queries
    and keys from different sequences, only positional attention keeps that weight.
    """
    e = vectors(parameters, tokens)
    return attention(parameters, e, e.roll(1, dims=0))


def loss(parameters: Parameters, batch: tuple[Tensor, ...]) -> Float[Tensor, ""]:
    """Cross-entropy of the counts at all positions, for `side_by_side.train`; a batch is tokens and counts."""
    tokens, counts = batch
    return _cross_entropy(predict_counts(parameters, tokens)[0], counts)


def regularised_risk(parameters: Parameters, batch: tuple[Tensor, ...]) -> Float[Tensor, ""]:
    """What training minimises, lecture 9.4: the loss, and λ/2 times the sum of the squares of all that is trained."""
    squares = [tensor.square().sum() for name, tensor in parameters.items() if name != "sight"]
    return loss(parameters, batch) + PENALTY / 2 * torch.stack(squares).sum()


def _cross_entropy(logits: Float[Tensor, "batch token class"], counts: Int[Tensor, "batch token"]) -> Float[Tensor, ""]:
    return -logits.log_softmax(dim=-1).gather(-1, counts[..., None]).mean()


def evaluate_network(parameters: Mapping[str, Tensor], test: Examples) -> dict[str, float]:
    """Evaluates one run on unseen sequences: accuracy, loss, and what its attention maps depend on.

    "token_dependence" is that of crossed maps, "of_whole_maps" that of the maps the sequences have, "off_diagonal" that
    of these maps without a position's weight on itself, rows summing to 1; all of the first thousand sequences.
    """
    with torch.no_grad():
        logits, alpha = predict_counts(parameters, test.tokens)
        return {
            "test_accuracy": float((logits.argmax(dim=-1) == test.counts).double().mean()),
            "test_loss": float(_cross_entropy(logits, test.counts)),
            "token_dependence": token_dependence(crossed(parameters, test.tokens[:_N_MAPS])),
            "of_whole_maps": token_dependence(alpha[:_N_MAPS]),
            "off_diagonal": token_dependence(_without_diagonal(alpha[:_N_MAPS])),
        }


def _without_diagonal(alpha: Float[Tensor, "batch query key"]) -> Float[Tensor, "batch query key_but_one"]:
    n, length, _ = alpha.shape
    others = alpha[:, ~torch.eye(length, dtype=torch.bool, device=alpha.device)].reshape(n, length, length - 1)
    return others / others.sum(dim=-1, keepdim=True)


def by_count(parameters: Mapping[str, Tensor], test: Examples) -> list[dict[str, int | float]]:
    """The accuracy by true count; most tokens occur once or twice."""
    with torch.no_grad():
        right = (predict_counts(parameters, test.tokens)[0].argmax(dim=-1) == test.counts).double()
    return [
        {"count": count, "n": int((test.counts == count).sum()), "accuracy": float(right[test.counts == count].mean())}
        for count in test.counts.unique().tolist()
    ]
