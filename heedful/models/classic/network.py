"""The networks of the debate whether attention is explanation: an encoder, one attention over its states, a linear map.

Reference: Jain & Wallace, *Attention is not Explanation*, 2019, arXiv:1902.10186, Section 2; Wiegreffe & Pinter,
*Attention is not not Explanation*, 2019, arXiv:1908.04626, use the same.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.errors import BadInput
from heedful.models.attention_hook import Attended, attend, keep_projection
from heedful.models.network import check_sizes
from heedful.models.training_loop import seeded

EncoderKind = Literal["bilstm", "average", "convolution"]
ScoreKind = Literal["tanh", "dot"]
FILTER_WIDTHS = (1, 3, 5, 7)
"""Words that a filter of the convolution reads, as in Jain & Wallace."""


@final
@dataclass(frozen=True)
class ClassicConfig:
    """The encoder, the scores of its attention, and sizes.

    A BiLSTM has d_hidden units in each direction. "average" reads every word alone, h_t = tanh(W x_t + b).
    "convolution" has d_hidden / 4 filters for each of the widths 1, 3, 5 and 7, with a ReLU. T_max counts [cls]; of a
    pair each text has it. Word vectors begin as N(0, word_scale²): Jain & Wallace begin with vectors that were trained
    elsewhere.
    """

    encoder: EncoderKind = "bilstm"
    attention: ScoreKind = "tanh"
    d_e: int = 128
    d_hidden: int = 128
    T_max: int = 256
    n_classes: int = 2
    pairs: bool = False
    word_scale: float = 0.1

    def __post_init__(self) -> None:
        least = {"d_e": 1, "d_hidden": 2, "T_max": 2, "n_classes": 2}
        if any(getattr(self, name) < size for name, size in least.items()):
            raise BadInput(f"A classic model needs at least {least}.")
        if not 0 < self.word_scale < float("inf"):
            raise BadInput(f"word_scale must be above 0; {self.word_scale} was given.")
        if self.encoder == "convolution" and self.d_hidden % len(FILTER_WIDTHS):
            raise BadInput(f"A convolution needs a d_hidden that is a multiple of 4; {self.d_hidden} was given.")
        check_sizes({name: getattr(self, name) for name in least})

    @property
    def width(self) -> int:
        """The size of a hidden state h_t."""
        return 2 * self.d_hidden if self.encoder == "bilstm" else self.d_hidden

    @property
    def d_att(self) -> int:
        """The size of a key of tanh attention: half of a hidden state, as in Jain & Wallace."""
        return self.width // 2


States = tuple[Float[Tensor, "batch token d_out"], Float[Tensor, "batch d_out"]]
"""The hidden state of every token, and one state of the whole text."""


@final
class Bilstm(nn.Module):
    """A bidirectional LSTM that does not read padding; the state of the text is the last one of both directions."""

    def __init__(self, config: ClassicConfig) -> None:
        super().__init__()
        self.lstm = nn.LSTM(config.d_e, config.d_hidden, batch_first=True, bidirectional=True)

    def forward(self, e: Float[Tensor, "batch token d_e"], n_tokens: Int[Tensor, "batch"]) -> States:
        """The hidden states; those of padding are zero."""
        # cuDNN keeps what the gradient needs only in training mode, which `still` ends. This LSTM has no dropout, so
        # nothing else depends on the mode.
        self.lstm.training = torch.is_grad_enabled()
        packed = pack_padded_sequence(e, n_tokens, batch_first=True, enforce_sorted=False)
        states, (last, _) = self.lstm(packed)
        h, _ = pad_packed_sequence(states, batch_first=True, total_length=e.shape[1])
        return h, last.transpose(0, 1).flatten(1)


@final
class PerWord(nn.Module):
    """h_t = tanh(W x_t + b): every word alone; the state of the text is their mean."""

    def __init__(self, config: ClassicConfig) -> None:
        super().__init__()
        self.map = nn.Linear(config.d_e, config.d_hidden)

    def forward(self, e: Float[Tensor, "batch token d_e"], n_tokens: Int[Tensor, "batch"]) -> States:
        """The hidden states."""
        h = torch.tanh(self.map(e))
        return h, mean_state(h, n_tokens)


@final
class Filters(nn.Module):
    """h_t = relu of filters over the words around t; the state of the text is their mean."""

    def __init__(self, config: ClassicConfig) -> None:
        super().__init__()
        n = config.d_hidden // len(FILTER_WIDTHS)
        self.filters = nn.ModuleList(nn.Conv1d(config.d_e, n, width, padding=width // 2) for width in FILTER_WIDTHS)

    def forward(self, e: Float[Tensor, "batch token d_e"], n_tokens: Int[Tensor, "batch"]) -> States:
        """The hidden states."""
        # Behind its words a text has zeros, whatever it is padded with.
        x = torch.where(is_token(n_tokens, e)[..., None], e, 0.0).transpose(1, 2)
        h = torch.relu(torch.cat([one(x) for one in self.filters], dim=1)).transpose(1, 2)
        return h, mean_state(h, n_tokens)


ENCODERS = {"bilstm": Bilstm, "average": PerWord, "convolution": Filters}


def is_token(n_tokens: Int[Tensor, "batch"], like: Float[Tensor, "batch token _"]) -> Bool[Tensor, "batch token"]:
    """Which positions hold a token of a text of that length."""
    return torch.arange(like.shape[1], device=like.device) < n_tokens.to(like.device)[:, None]


def mean_state(h: Float[Tensor, "batch token d_out"], n_tokens: Int[Tensor, "batch"]) -> Float[Tensor, "batch d_out"]:
    """The mean of the states of the tokens."""
    return torch.where(is_token(n_tokens, h)[..., None], h, 0.0).sum(dim=1) / n_tokens.to(h)[:, None]


@final
class ClassicNetwork(nn.Module):
    """f = W_c Σ_t α_t h_t + b_c with α = softmax(s) over the words; of a pair + W_m Q, and only its first text has h_t.

        tanh   s_t = v · tanh(W_1 h_t + W_2 Q + b)
        dot    s_t = Q · h_t / √d

    Q is the state of the second text of a pair, read by an encoder of its own. For single texts the term W_2 Q is left
    out, and in the dot product Q is learnt.

    Differs from the paper: of a pair, Jain & Wallace have one more hidden layer between Σ_t α_t h_t, Q and the output.
    """

    def __init__(self, config: ClassicConfig, n_words: int) -> None:
        super().__init__()
        self.config = config
        width, pairs = config.width, config.pairs
        # Every pass announces the tokens that it reads, so that a hook inside of a layer can know them.
        self.tokens = nn.Identity()
        self.W_e = nn.Parameter(config.word_scale * torch.randn(n_words, config.d_e))
        self.first = ENCODERS[config.encoder](config)
        self.second = ENCODERS[config.encoder](config) if pairs else None
        if config.attention == "tanh":
            self.W_1 = nn.Linear(width, config.d_att)
            self.W_2 = nn.Linear(width, config.d_att, bias=False) if pairs else None
        if config.attention == "tanh" or not pairs:
            size = config.d_att if config.attention == "tanh" else width
            self.v = nn.Parameter((2 * torch.rand(size) - 1) / sqrt(size))
        self.W_c = nn.Linear(width, config.n_classes)
        self.W_m = nn.Linear(width, config.n_classes, bias=False) if pairs else None

    def forward(
        self,
        e: Float[Tensor, "batch token d_e"],
        lengths: Int[Tensor, "2 batch"],
        seen: Bool[Tensor, "batch token"],
    ) -> Float[Tensor, "batch class"]:
        """The logits; `lengths` are the numbers of tokens of both texts, and attention goes to the tokens `seen`."""
        h, _ = self.first(e, lengths[0])
        Q = self._asked(e, lengths)
        q, k, scale = self._scored(h, Q)
        top = self.W_c
        keep_projection(self, lambda: top.weight.T)
        call = Attended(self, q[:, None, None], k[:, None], h[:, None], seen[:, None, None], False, scale)
        f = self.W_c(attend(call)[:, 0, 0])
        return f if self.W_m is None else f + self.W_m(Q)

    def _asked(self, e: Float[Tensor, "batch token d_e"], lengths: Int[Tensor, "2 batch"]) -> Tensor | None:
        """Q, the state of the second text; None if there is none."""
        if self.second is None:
            return None
        places = lengths[0][:, None] + torch.arange(int(lengths[1].max()))
        places = places.clamp(max=e.shape[1] - 1).to(e.device)
        _, Q = self.second(torch.gather(e, 1, places[..., None].expand(-1, -1, e.shape[2])), lengths[1])
        return Q

    def _scored(self, h: Float[Tensor, "batch token d_out"], Q: Tensor | None) -> tuple[Tensor, Tensor, float]:
        """Query, keys and scale, so that s_t = scale · q · k_t."""
        if self.config.attention == "dot":
            return (self.v.expand(len(h), -1) if Q is None else Q), h, 1 / sqrt(h.shape[-1])
        k = self.W_1(h) if self.W_2 is None else self.W_1(h) + self.W_2(Q)[:, None]
        return self.v.expand(len(h), -1), torch.tanh(k), 1.0


def initial_classic(config: ClassicConfig, n_words: int, seed: int) -> ClassicNetwork:
    """Initial weights: N(0, word_scale²) for word vectors, those of `torch.nn`, U(±1/√inputs), for the rest."""
    with seeded(seed):
        return ClassicNetwork(config, n_words)
