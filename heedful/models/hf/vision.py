"""Hugging Face models that classify images: ViT, DeiT and similar models; a patch is a unit."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Float32
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.nn.functional import conv2d, pad
from transformers import PreTrainedModel

from heedful.document import SPECIAL, Document, Picture
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import Attended
from heedful.models.fingerprint import check_weights, fingerprint_of
from heedful.models.hf.hook import listening
from heedful.models.hf.pretrained import HfModel, returned_by
from heedful.models.readout import counted_forwards, influence
from heedful.models.recording import OneTower, record
from heedful.target import Returns

_NAMES = ("[CLS]", "[DIST]")


@final
class HfVision(HfModel, OneTower):
    """An image classifier that reads patches: e_t holds the pixels of patch t, after the processor's normalisation.

    The tokens before the patches ([CLS], a distillation token) have no pixels; their rows of e are zero and unused.
    """

    replacement_id = 0

    def __init__(self, network: PreTrainedModel, processor: Any, returns: Returns | None = None) -> None:
        check_weights(network)
        self.network = network
        self.processor = processor
        config: Any = network.config
        self.classes = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
        self.returns = returns or returned_by(network)
        side = getattr(config, "patch_size", None)
        if not isinstance(side, int):
            raise Unsupported(f"{type(network).__name__} does not read square patches, so it cannot be explained.")
        self._side = side
        with counted_forwards(network) as passes:
            self._n_special = self._count_special()
            self._reads = self._probe()
        self.probe_forwards = len(passes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, self.classes)

    def _count_special(self) -> int:
        """How many tokens come before the patches."""
        picture = self._picture(Image.new("RGB", (32, 32)))
        n_patches = picture.grid[0] * picture.grid[1]
        call = record(self, [self._document(picture, "", 0)]).calls[0]
        n_special = call.q.shape[2] - n_patches
        if n_special < 0 or call.q.shape[0] != 1:
            raise Unsupported(
                f"{type(self.network).__name__} does not keep one token per patch, so it cannot be explained."
            )
        return n_special

    def _probe(self) -> Bool[np.ndarray, "query"]:
        """Which positions the logits are read from."""
        document = self.encode(Image.new("RGB", (32, 32), (120, 60, 30)))
        n_tokens = len(document.ids)
        try:
            # All patches are read or none, so the last one decides.
            read = influence(self, document, [*range(self._n_special), n_tokens - 1])
        except Unsupported as error:
            self.withheld = dict.fromkeys(("attention", "layers"), str(error))
            return np.ones(n_tokens, dtype=bool)
        return np.repeat(read, [*([1] * self._n_special), n_tokens - self._n_special])

    def encode(self, text: object) -> Document:
        """An image: the path of its file, a PIL image, or an array (height, width, 3) of bytes."""
        image = _opened(text)
        digest = hashlib.sha256(np.asarray(image).tobytes()).hexdigest()[:12]
        name = Path(text).name if isinstance(text, str | Path) else f"picture {digest}"
        return self._document(self._picture(image), name, self._n_special)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        pixels = torch.stack([torch.from_numpy(self._pixels(d)) for d in documents])
        patches = rearrange(
            pixels, "batch c (row p) (column q) -> batch (row column) (c p q)", p=self._side, q=self._side
        )
        special_rows = patches.new_zeros(len(documents), len(documents[0].ids) - patches.shape[1], patches.shape[2])
        return torch.cat([special_rows, patches], dim=1).to(self.network.device, self.network.dtype)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        if hidden is not None:
            if self._reads[self._n_special :].any():
                raise Unsupported("This model reads its logits from the patches, so none can be dropped or hidden.")
            with listening(self.network, partial(_hide, ~hidden[:, None, None, :])):
                return self.forward(embeddings, documents)
        picture = documents[0].picture
        assert picture is not None
        rows, columns = picture.grid
        pixels = rearrange(
            embeddings[:, embeddings.shape[1] - rows * columns :],
            "batch (row column) (c p q) -> batch c (row p) (column q)",
            row=rows,
            p=self._side,
            q=self._side,
        )
        return self.network(pixel_values=pixels).logits

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        reads = torch.from_numpy(self._reads).double().to(self.network.device)
        return (reads / reads.sum()).expand(len(documents), -1)

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        raise Unsupported(f"An image has no words, so {word!r} cannot replace a patch; give another absence.")

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:
        """Grey (zero after normalisation), the image's mean colour, or the blurred patch."""
        e = self.embed([document])[0]
        if kind == "blur":
            blurred = replace(document, picture=_blurred(document.picture, self._side))
            return self.embed([blurred])[0]
        if kind != "mean":
            return torch.zeros_like(e[0])
        colours = rearrange(e[self._n_special :], "patch (c p) -> c (patch p)", c=3).mean(dim=1)
        return colours.repeat_interleave(self._side**2)

    def _picture(self, image: Image.Image) -> Picture:
        pixels = np.asarray(self.processor(images=image, return_tensors="np")["pixel_values"][0], dtype=np.float32)
        height, width = pixels.shape[1:]
        if height % self._side or width % self._side:
            raise BadInput(
                f"The image is read at {height}×{width}, which is not a multiple of the patch size {self._side}."
            )
        means, scales = (
            np.asarray(x or default)[:, None, None]
            for x, default in ((self.processor.image_mean, [0.0]), (self.processor.image_std, [1.0]))
        )
        rgb = np.clip((pixels * scales + means) * 255, 0, 255).astype(np.uint8).transpose(1, 2, 0)
        return Picture(np.ascontiguousarray(rgb), pixels, (height // self._side, width // self._side))

    def _document(self, picture: Picture, name: str, n_special: int) -> Document:
        rows, columns = picture.grid
        n_tokens = n_special + rows * columns
        return Document(
            text=name,
            ids=np.arange(n_tokens),
            pieces=(
                *([*_NAMES, *(f"[REG{n}]" for n in range(n_special))][:n_special]),
                *(f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)),
            ),
            spans=((0, 0),) * n_tokens,
            words=np.maximum(np.arange(n_tokens) - n_special, SPECIAL),
            known=np.ones(n_tokens, dtype=bool),
            picture=picture,
        )

    def _pixels(self, document: Document) -> Float32[np.ndarray, "channel height width"]:
        assert document.picture is not None
        return document.picture.pixels


def _hide(seen: Bool[Tensor, "batch 1 1 token"], call: Attended) -> Tensor:
    """Attention without some patches in every layer, which equals dropping them: no logits are read from patches."""
    return replace(call, mask=seen, causal=False).output()


def _blurred(picture: Picture | None, side: int) -> Picture:
    """The image blurred by a Gaussian whose standard deviation is half a patch."""
    assert picture is not None
    pixels = torch.from_numpy(picture.pixels)[None]
    reach = side
    line = torch.arange(-reach, reach + 1, dtype=pixels.dtype)
    weights = torch.exp(-(line**2) / (2 * (side / 2) ** 2))
    weights = weights / weights.sum()
    for shape in ((1, 1, -1, 1), (1, 1, 1, -1)):
        wide = (0, 0, reach, reach) if shape[2] == -1 else (reach, reach, 0, 0)
        kernel = weights.view(shape).expand(pixels.shape[1], -1, -1, -1)
        pixels = conv2d(pad(pixels, wide, mode="replicate"), kernel, groups=pixels.shape[1])
    return replace(picture, pixels=pixels[0].numpy())


def _opened(picture: object) -> Image.Image:
    if isinstance(picture, Image.Image):
        return picture.convert("RGB")
    if isinstance(picture, np.ndarray):
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise BadInput(
                f"An image is an array (height, width, 3) of uint8; {picture.shape} {picture.dtype} was given."
            )
        return Image.fromarray(picture)
    if not isinstance(picture, str | Path):
        raise BadInput(f"This model reads images: a file, a PIL image or an array; {type(picture).__name__} was given.")
    try:
        with Image.open(picture) as image:
            return image.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError) as error:
        reason = (
            "it is not an image" if isinstance(error, UnidentifiedImageError) else getattr(error, "strerror", error)
        )
        raise BadInput(f"This model reads images, and {str(picture)[:80]!r} cannot be opened: {reason}.") from None
