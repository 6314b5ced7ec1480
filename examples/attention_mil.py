"""Exact Shapley values of an attention-based multiple-instance model (Ilse, Tomczak & Welling, 2018).

    python examples/attention_mil.py

A bag has 40 instances. It is positive if any of them is of a hidden kind. A small attention-pooling network learns this
from the labels of bags alone. Its output is softmax pooling over instances that do not attend to each other, which is
all that `heedful.Bag` needs to compute Shapley and LIME values without sampling.
"""

import numpy as np
import torch
from torch import Tensor, nn

import heedful

N_ITEMS, N_FEATURES = 40, 6


def bags(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Instances (bag, item, feature), which of them are the hidden kind, and each bag's label."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, N_ITEMS, N_FEATURES, generator=rng)
    hidden = torch.rand(n, N_ITEMS, generator=rng) < 0.02
    x[hidden] = 0.3 * x[hidden] + 2.0
    return x, hidden, hidden.any(dim=1).float()


class AttentionPooling(nn.Module):
    """Scores and values of each instance by itself; the bag's logit is Σ_t softmax(scores)_t values_t."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(N_FEATURES, 32), nn.ReLU())
        self.score, self.value = nn.Linear(32, 1), nn.Linear(32, 1)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and values of the instances."""
        h = self.features(x)
        return self.score(h).squeeze(-1), self.value(h).squeeze(-1)

    def forward(self, x: Tensor) -> Tensor:
        scores, values = self.parts(x)
        return (torch.softmax(scores, dim=-1) * values).sum(dim=-1)


def train() -> AttentionPooling:
    """A network trained on 2,000 random bags."""
    torch.manual_seed(0)
    model = AttentionPooling()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    x, _, label = bags(2000, seed=0)
    for _ in range(300):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def as_bag(model: AttentionPooling, x: Tensor) -> heedful.Bag:
    """A bag as a model: scores and values of every item, and of the average item, which replaces a removed one."""
    with torch.no_grad():
        scores, values = model.parts(x)
        gone_score, gone_value = model.parts(bags(2000, seed=0)[0].mean(dim=(0, 1)))
    return heedful.Bag(
        scores,
        values,
        names=[f"item-{number}" for number in range(len(x))],
        gone_scores=gone_score.expand(len(x)),
        gone_values=gone_value.expand(len(x)),
        classes=["positive"],
    )


def main() -> None:
    """Trains the network, then explains its predictions by attention and by Shapley values."""
    model = train()
    x, hidden, label = bags(500, seed=1)
    with torch.no_grad():
        accuracy = float(((model(x) > 0) == (label > 0)).float().mean())
    print(f"accuracy on new bags: {accuracy:.1%}")

    hits_by_method: dict[str, list[bool]] = {"attention-mean": [], "shapley-exact": []}
    for number in np.flatnonzero(label.numpy() > 0)[:50]:
        bag = as_bag(model, x[number])
        for method, hits in hits_by_method.items():
            strongest = heedful.explain(bag, bag.text, method).top(1)[0][0]
            hits.append(bool(hidden[number, int(strongest.removeprefix("item-"))]))
    for method, hits in hits_by_method.items():
        print(f"{method}: the strongest item is of the hidden kind in {np.mean(hits):.0%} of 50 positive bags")

    bag = as_bag(model, x[int(np.flatnonzero(label.numpy() > 0)[0])])
    exact = heedful.explain(bag, bag.text, "shapley-exact")
    sampled = heedful.explain(bag, bag.text, "shapley-sampled")
    print(f"one bag, attention: {heedful.explain(bag, bag.text, 'attention-mean').top(3)}, which is unsigned")
    print(f"one bag, exact: {exact.top(3)}, error at most {exact.error.max():.0e}")
    print(f"sampled, {sampled.facts['masks']:,} masks: {sampled.top(3)}, ± {sampled.error.max():.2g}")


if __name__ == "__main__":
    main()
