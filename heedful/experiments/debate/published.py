"""Numbers of the debate as they were published."""

from collections.abc import Mapping
from typing import NamedTuple, final

AGREEMENT: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("imdb", "bilstm"): {"attention–gradient": 0.437, "attention–deletion": 0.341, "gradient–deletion": 0.517},
    ("sst", "bilstm"): {"attention–gradient": 0.351, "attention–deletion": 0.291, "gradient–deletion": 0.656},
    ("ag-news", "bilstm"): {"attention–gradient": 0.389, "attention–deletion": 0.367, "gradient–deletion": 0.612},
    ("imdb", "average"): {"attention–gradient": 0.675},
    ("sst", "average"): {"attention–gradient": 0.606},
    ("ag-news", "average"): {"attention–gradient": 0.770},
}
"""Kendall's τ on the test texts, tanh attention: the outputs of Jain & Wallace (2019), arXiv:1902.10186."""


@final
class PublishedAccuracy(NamedTuple):
    """F1 of a BiLSTM with learned and with uniform attention, and of a bag of words guided by four kinds of weights."""

    learned: float
    uniform: float
    bag_uniform: float
    bag_own: float
    bag_guided: float


ACCURACY: Mapping[str, PublishedAccuracy] = {
    "imdb": PublishedAccuracy(0.902, 0.879, 0.863, 0.888, 0.905),
    "sst": PublishedAccuracy(0.831, 0.822, 0.812, 0.817, 0.824),
}
"""Wiegreffe & Pinter (2019), arXiv:1908.04626, Tables 2 and 4."""

N_TRAIN = {"imdb": 17_212, "sst": 6_355, "ag-news": 60_000}
"""Training texts of Jain & Wallace (2019)."""
