"""Numbers of the debate as they were published."""

from collections.abc import Mapping

PAIRS = ("attention–gradient", "attention–deletion", "gradient–deletion")
AGREEMENT: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("imdb", "bilstm"): {"attention–gradient": 0.437, "attention–deletion": 0.341, "gradient–deletion": 0.517},
    ("sst", "bilstm"): {"attention–gradient": 0.351, "attention–deletion": 0.291, "gradient–deletion": 0.656},
    ("ag-news", "bilstm"): {"attention–gradient": 0.389, "attention–deletion": 0.367, "gradient–deletion": 0.612},
    ("imdb", "average"): {"attention–gradient": 0.675},
    ("sst", "average"): {"attention–gradient": 0.606},
    ("ag-news", "average"): {"attention–gradient": 0.770},
}
"""Kendall's τ on the test texts, tanh attention: the outputs of Jain & Wallace (2019), arXiv:1902.10186."""


UNIFORM: Mapping[str, tuple[float, float]] = {"imdb": (0.902, 0.879), "sst": (0.831, 0.822), "ag-news": (0.964, 0.960)}
"""F1 of a BiLSTM with learned and with uniform attention: Wiegreffe & Pinter (2019), arXiv:1908.04626, Table 2."""

BAG: Mapping[str, Mapping[str, float]] = {
    "imdb": {"uniform": 0.863, "its own, learned": 0.888, "this model's": 0.905},
    "sst": {"uniform": 0.812, "its own, learned": 0.817, "this model's": 0.824},
}
"""F1 of a bag of words with uniform weights, its own, and those of the BiLSTM: the same, Table 4."""

N_TRAIN = {"imdb": 17_212, "sst": 6_355, "ag-news": 60_000}
"""Training texts of Jain & Wallace (2019)."""

_TITLES = {"imdb": "IMDB", "sst": "SST", "ag-news": "AG News"}


def listed(values: Mapping[str, float]) -> str:
    """The numbers of the corpora, as findings show them."""
    return ", ".join(f"{_TITLES[corpus]} {value:.3f}" for corpus, value in values.items())
