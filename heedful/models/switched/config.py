"""The sizes and switches of the transformer of `heedful train --kind transformer`."""

from dataclasses import asdict, dataclass, field
from typing import Literal, final

from heedful.errors import BadInput
from heedful.models.network import LEARNED, check_sizes, check_word

Nonlinearity = Literal["none", "relu", "gelu"]
Tied = Literal["no", "query-key", "layers"]
Values = Literal["own", "identity"]
TokenPositions = Literal["equation-3", "authors", "learned", "halves", "none"]
TokenPadding = Literal["unk", "eos", "hidden"]
ReadAt = Literal["cls", "last"]
_LATER = {"padding": "unk", "values": "own", "read": "cls", "last_norm": True}


@final
@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of Appendix F, and the switches.

    A layer is x ← norm(x·skip + 1/K Σ_i W_o ṽ_i), then, with a non-linearity, x ← norm(x·skip + W_2 bend(W_1 x)).
    `last_norm` False leaves out the very last of these norms. `tied` shares W_q = W_k inside a layer ("query-key": Cui
    et al., 2024) or all weights between layers ("layers"). `values` "identity" has W_v = W_o = 1. `causal` hides later
    tokens. The logits are read from [cls], or with `read` "last", and in a causal model, from the last token.

    Positions are a table, or trained: "learned" is added to the word vectors; with "halves" words have the first half
    of the coordinates and positions the second, (W_e, 0) + (0, W_p); with "none" there are none. Padding is [unk],
    or a token of its own ("eos"), and receives attention; "hidden" padding does not, nor does [cls] with `read` "last".
    """

    depth: int = 1
    skip: bool = False
    norm: bool = False
    nonlinearity: Nonlinearity = "none"
    causal: bool = False
    tied: Tied = "no"
    n_heads: int = 6
    T_max: int = 256
    d_e: int = 128
    d_att: int = 64
    d_out: int = 64
    d_hidden: int = 256
    n_classes: int = 2
    positional: TokenPositions = "equation-3"
    # Not in the text that fingerprints of older models were made from.
    padding: TokenPadding = field(default="unk", repr=False)
    values: Values = field(default="own", repr=False)
    read: ReadAt = field(default="cls", repr=False)
    last_norm: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        if self.depth < 1 or self.d_e % 2:
            raise BadInput(
                f"A transformer needs at least one layer and an even d_e; {self.depth} and {self.d_e} given."
            )
        words = {"positional": TokenPositions, "padding": TokenPadding, "values": Values, "read": ReadAt}
        for name, kind in words.items():
            check_word(name, getattr(self, name), kind)
        sizes = ("depth", "n_heads", "T_max", "d_e", "d_att", "d_out", "d_hidden", "n_classes")
        check_sizes({name: getattr(self, name) for name in sizes})
        if min(getattr(self, name) for name in sizes) < 1 or self.T_max < 2:
            raise BadInput("A transformer needs sizes of at least 1, and a T_max of at least 2.")

    @property
    def identity(self) -> str:
        """What a fingerprint is made from: the settings, of the later ones those that are not at their default."""
        later = {name: value for name, value in asdict(self).items() if _LATER.get(name, value) != value}
        return f"{self!r}{later or ''}"

    @property
    def reads_last(self) -> bool:
        """Whether the logits are read from the last token instead of [cls]."""
        return self.causal or self.read == "last"

    @property
    def plain(self) -> bool:
        """Whether there is nothing between attention and the logits, so that W_o of the last layer is W_ℓ."""
        alone = (self.depth == 1 or self.tied != "layers") and self.values == "own"
        return alone and not self.skip and not self.norm and self.nonlinearity == "none"

    def shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The weights of one layer."""
        K, width = self.n_heads, self.n_classes if self.plain and layer == self.depth - 1 else self.d_e
        shapes: dict[str, tuple[int, ...]] = {"W_q": (K, self.d_att, self.d_e)}
        if self.tied != "query-key":
            shapes["W_k"] = (K, self.d_att, self.d_e)
        if self.values == "own":
            shapes |= {"W_v": (K, self.d_out, self.d_e), "W_o": (K, width, self.d_out)}
        shapes |= {"b_q": (K, self.d_att), "b_k": (K, self.d_att)}
        if self.values == "own":
            shapes["b_v"] = (K, self.d_out)
        if self.nonlinearity != "none":
            shapes |= {"W_1": (self.d_hidden, self.d_e), "b_1": (self.d_hidden,)}
            shapes |= {"W_2": (self.d_e, self.d_hidden), "b_2": (self.d_e,)}
        return shapes

    def all_shapes(self, n_words: int) -> dict[str, tuple[int, ...]]:
        """The shape of every weight of a network, by its name in a file."""
        n_layers = 1 if self.tied == "layers" else self.depth
        layers = {
            f"layers.{layer}.weights.{name}": shape
            for layer in range(n_layers)
            for name, shape in self.shapes(layer).items()
        }
        tables = {"W_e": (n_words + (self.padding == "eos"), self.d_e), "W_c": (self.n_classes, self.d_e)}
        return tables | layers | ({"W_p": (self.T_max, self.d_e)} if self.positional in LEARNED else {})
