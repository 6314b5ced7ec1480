"""Abstracted attention of a small transformer on time series (after Schwenke & Atzmueller, 2021).

    python examples/time_series.py [FILE.png]

A series has 24 values of noise, one spike up and, right beside it, one spike down. The class is which of them comes
first. Values become symbols, a (low) to e (high), as in SAX, and each symbol is a token. Attention of single series is
hard to read, so it is abstracted: averaged over all series by symbol, and by the distance from the true pattern. Both
are compared with uniform attention, and with the true pattern: only the symbols a and e, at the distances 0 and 1.

Reference: Schwenke & Atzmueller, "Show Me What You're Looking For: Visualizing Abstracted Transformer Attention for
Enhancing Their Local Interpretability on Time Series Data", FLAIRS 2021.
"""

import sys
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import heedful

LENGTH, SYMBOLS, CUTS = 24, "abcde", (-2.0, -0.5, 0.5, 2.0)


def series(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (series, time), the time at which each pattern begins, and the class: 1 if the spike up comes first."""
    rng = np.random.default_rng(seed)
    values, start, label = rng.normal(0, 0.7, (n, LENGTH)), rng.integers(0, LENGTH - 1, n), rng.integers(0, 2, n)
    rows = np.arange(n)
    values[rows, start] = np.where(label, 3.0, -3.0)
    values[rows, start + 1] = -values[rows, start]
    return values, start, label


def symbolised(values: np.ndarray) -> list[str]:
    """Every series as a text of symbols."""
    return [" ".join(SYMBOLS[symbol] for symbol in row) for row in np.digitize(values, CUTS)]


class Classifier(nn.Module):
    """Embeddings of symbols and times, two encoder layers, the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.symbols, self.times = nn.Embedding(len(SYMBOLS), 16), nn.Embedding(LENGTH, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder, self.out = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 2)

    def forward(self, ids: Tensor) -> Tensor:
        e = self.symbols(ids) + self.times.weight[: ids.shape[1]]
        return self.out(self.encoder(e).mean(dim=1))


def train() -> Classifier:
    """A network trained on 4,000 series."""
    torch.manual_seed(0)
    network = Classifier()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
    values, _, label = series(4000, seed=0)
    ids, labels = torch.from_numpy(np.digitize(values, CUTS)), torch.from_numpy(label)
    for step in range(400):
        some = torch.arange(step * 100, step * 100 + 100) % len(ids)
        loss = nn.functional.cross_entropy(network(ids[some]), labels[some])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


def tokens(text: str) -> list[tuple[int, int, int]]:
    """Every symbol as (number, start, end)."""
    return [(SYMBOLS.index(symbol), 2 * time, 2 * time + 1) for time, symbol in enumerate(text.split())]


def abstracted(model: Any, texts: list[str], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean attention between symbols, and to each distance from the pattern, as a multiple of uniform attention."""
    by_symbol, n_pairs = np.zeros((5, 5)), np.zeros((5, 5))
    by_distance, n_times = np.zeros(7), np.zeros(7)
    for text, first in zip(texts, start, strict=True):
        document = model.encode(text)
        A = model.maps(document).mean(axis=(0, 1)) * LENGTH
        member = np.eye(5)[document.ids]
        by_symbol += member.T @ A @ member
        n_pairs += np.outer(member.sum(axis=0), member.sum(axis=0))
        distances = np.arange(LENGTH) - first + 3
        near = (distances >= 0) & (distances < 7)
        np.add.at(by_distance, distances[near], A.mean(axis=0)[near])
        np.add.at(n_times, distances[near], 1)
    return by_symbol / n_pairs, by_distance / n_times


def draw(by_symbol: np.ndarray, by_distance: np.ndarray, file: str) -> None:
    """Both averages as a picture; the true pattern is marked."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    image = left.imshow(by_symbol, cmap="Blues", vmin=0)
    left.set_xticks(range(5), [f"{symbol}*" if symbol in "ae" else symbol for symbol in SYMBOLS])
    left.set_yticks(range(5), list(SYMBOLS))
    left.set(title="by symbol (* in the pattern)", xlabel="attended to", ylabel="attends")
    figure.colorbar(image, label="times uniform attention")
    right.bar(range(-3, 4), by_distance, color=["tab:orange" if place in (0, 1) else "0.7" for place in range(-3, 4)])
    right.axhline(1, color="0.3", linewidth=0.8)
    right.set(
        title="by distance (orange: the pattern)", xlabel="distance from its start", ylabel="times uniform attention"
    )
    figure.savefig(file)


def main() -> None:
    """Trains, abstracts the attention of 200 series, and compares it with the pattern."""
    model = heedful.wrap(train(), tokens, classes=["down first", "up first"])
    values, start, label = series(200, seed=1)
    texts = symbolised(values)
    print(f"accuracy on new series: {np.mean(model.predict(texts).argmax(axis=1) == label):.1%}")
    by_symbol, by_distance = abstracted(model, texts, start)
    print("attention to symbol  " + "".join(f"{symbol:>8}" for symbol in SYMBOLS))
    for symbol, row in zip(SYMBOLS, by_symbol, strict=True):
        print(f"  from {symbol}             " + "".join(f"{value:8.2f}" for value in row))
    print("distance from the pattern" + "".join(f"{distance:8d}" for distance in range(-3, 4)))
    print("  attention              " + "".join(f"{value:8.2f}" for value in by_distance))
    for method in ("attention-mean", "lrp", "gradient-x-input"):
        explanations = heedful.explain(model, texts, method, unit="token", progress=None)
        strongest = [set(np.argsort(-np.abs(e.scores))[:2].tolist()) for e in explanations]
        found = np.mean([two == {first, first + 1} for two, first in zip(strongest, start.tolist(), strict=True)])
        print(f"{method}: the two strongest values are the pattern in {found:.0%} of series")
    if len(sys.argv) > 1:
        draw(by_symbol, by_distance, sys.argv[1])


if __name__ == "__main__":
    main()
