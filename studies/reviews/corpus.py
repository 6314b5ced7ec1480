"""IMDB and SST as token ids: what is trained on, what is held out to choose among models, and what is tested on."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Int
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from heedful.models.encoder.word_pieces import (
    CUT_ID,
    PAD_ID,
    SPECIAL_PIECES,
    START_ID,
    WordPieces,
    parts_kept,
    without_breaks,
)
from heedful.run_folder import read_tensors, write_tensors
from studies.families.training import read_columns

NEUTRAL = 2
"""The label of phrases that people rated neutral; they are trained to the probability ½."""
_SPLITS = ("unsup", "train", "held_reviews", "test", "sentences", "phrases", "verdicts", "held_sentences", "validation")
_LONG_PHRASE = 4
_SHORT = 12
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@final
@dataclass(frozen=True, eq=False)
class Texts:
    """Token ids of texts one after another, how many each text has, and labels; −1 where there is none."""

    flat: Int[Tensor, "_"]
    lengths: Int[Tensor, "text"]
    labels: Int[Tensor, "text"]

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: str) -> "Texts":
        """The same on a device."""
        return Texts(*(part.to(device) for part in (self.flat.int(), self.lengths, self.labels)))

    def rows(self, which: Int[Tensor, "batch"], T_max: int, width: int | None = None) -> Int[Tensor, "batch token"]:
        """Padded rows as the model reads them, of a given width or wide enough."""
        n = self.lengths[which][:, None]
        start = (self.lengths.cumsum(0) - self.lengths)[which][:, None]
        j = torch.arange((width or min(T_max, int(n.max()) + 1)) - 1, device=n.device)
        is_long, head = n >= T_max, parts_kept(T_max, T_max)[0]
        place = torch.where(is_long & (j >= head), n - T_max + 1 + j, j)
        ids = self.flat[start + torch.minimum(place, n - 1).clamp(min=0)].long()
        ids = torch.where(is_long & (j == head), CUT_ID, torch.where(place < n, ids, PAD_ID))
        return torch.cat([torch.full_like(n, START_ID).long(), ids], dim=1)

    def stream(self) -> Int[Tensor, "_"]:
        """All texts one after another, each after [CLS]."""
        ends = self.lengths.cumsum(0)
        at = torch.arange(len(self.flat), device=self.flat.device)
        stream = self.flat.new_full((len(self.flat) + len(self),), START_ID)
        stream[at + 1 + torch.searchsorted(ends, at, right=True)] = self.flat
        return stream


def read_corpus(data: Path, folder: Path, n_pieces: int, n_held: int, seed: int) -> tuple[WordPieces, dict[str, Texts]]:
    """Vocabulary and texts; tokenized once, and read back from the folder afterwards."""
    path = folder / "tokens.safetensors"
    if not path.exists():
        pieces, corpus = _tokenized(data, n_pieces, n_held, seed)
        tensors = {f"{name}.{part}": getattr(texts, part) for name, texts in corpus.items() for part in _PARTS}
        write_tensors(path, tensors, {"pieces": "\n".join(pieces)})
    tensors, metadata = read_tensors(path)
    corpus = {name: Texts(*(tensors[f"{name}.{part}"] for part in _PARTS)) for name in _SPLITS}
    return WordPieces(tuple(metadata["pieces"].split("\n"))), corpus


_PARTS = ("flat", "lengths", "labels")


def _tokenized(data: Path, n_pieces: int, n_held: int, seed: int) -> tuple[list[str], dict[str, Texts]]:
    """IMDB's test reviews and SST's validation sentences are in no other split, and the vocabulary is without them."""
    rng = np.random.default_rng(seed)
    (unsup,) = read_columns(data / "imdb/unsup.parquet", "text")
    train, test = (read_columns(data / f"imdb/{part}.parquet", "text", "label") for part in ("train", "test"))
    # IMDB has the texts of some test reviews in its other files too.
    tested = set(test[0])
    unsup = [text for text in unsup if text not in tested]
    own = [n for n, text in enumerate(train[0]) if text not in tested]
    order = rng.permutation(own)
    held, kept = ([[column[i] for i in part] for column in train] for part in (order[:n_held], order[n_held:]))
    trees = list(zip(*read_columns(data / "sst/sst_trees_train.parquet", *_TREE), strict=True))
    is_held = np.zeros(len(trees), dtype=bool)
    is_held[rng.permutation(len(trees))[: n_held // 3]] = True
    sentences = [" ".join(tree[0]) for tree, out in zip(trees, is_held, strict=True) if not out]
    held_sentences = [
        (" ".join(tree[0]), tree[1]) for tree, out in zip(trees, is_held, strict=True) if out and tree[1] >= 0
    ]
    phrases = _phrases(data, trees, is_held)
    validation = read_columns(data / "sst/glue_sst2_validation.parquet", "text", "label")
    assert not {*map(_plain, validation[0])} & {_plain(text) for text, _ in phrases}, (
        "a validation sentence is trained on"
    )
    tokenizer = _tokenizer((*unsup, *kept[0], *sentences * 8), n_pieces)
    found = tokenizer.get_vocab()
    texts: dict[str, tuple[Sequence[str], Sequence[int] | None]] = {
        "unsup": (unsup, None),
        "train": (kept[0], kept[1]),
        "held_reviews": (held[0], held[1]),
        "test": (test[0], test[1]),
        "sentences": ([*sentences, *map(_joined, sentences)], None),
        "phrases": ([text for text, _ in phrases], [label for _, label in phrases]),
        "verdicts": _verdicts(*kept),
        "held_sentences": ([text for text, _ in held_sentences], [label for _, label in held_sentences]),
        "validation": (validation[0], validation[1]),
    }
    return sorted(found, key=lambda piece: found[piece]), {
        name: _numbered(tokenizer, *some) for name, some in texts.items()
    }


_TREE = ("tokens", "label2", "span_start", "span_end", "span_label5")


def _phrases(data: Path, trees: list[tuple], is_held: Bool[np.ndarray, "tree"]) -> list[tuple[str, int]]:
    """The phrases of SST-2, and those of the trees that are neutral, without the longer ones of held-out sentences.

    Every second is spelt as people write, "doesn't" for "does n't".
    """
    neutral, held = {}, set()
    for (tokens, _, starts, ends, labels), out in zip(trees, is_held, strict=True):
        for start, end, label in zip(starts, ends, labels, strict=True):
            phrase = _plain(" ".join(tokens[start:end]))
            if out and end - start >= _LONG_PHRASE:
                held.add(phrase)
            elif label == NEUTRAL:
                neutral[phrase] = NEUTRAL
    rated = zip(*read_columns(data / "sst/glue_sst2_train.parquet", "text", "label"), strict=True)
    phrases = [(text, label) for text, label in (*rated, *neutral.items()) if _plain(text) not in held]
    return [(_joined(text) if n % 2 else text, label) for n, (text, label) in enumerate(phrases)]


def _verdicts(texts: Sequence[str], labels: Sequence[int]) -> tuple[list[str], list[int]]:
    """First and last sentences of reviews that are short, with the label of the review.

    The phrases of SST are by critics and have few idioms of viewers, such as "don't miss it".
    """
    found = []
    for text, label in zip(texts, labels, strict=True):
        sentences = [part.strip() for part in _SENTENCE_END.split(without_breaks(text)) if part.strip()]
        ends = dict.fromkeys(sentences[:1] + sentences[-1:])
        found += [(sentence, label) for sentence in ends if len(sentence.split()) <= _SHORT]
    return [sentence for sentence, _ in found], [label for _, label in found]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _joined(text: str) -> str:
    return text.replace(" n't", "n't")


def _tokenizer(texts: Iterable[str], n_pieces: int) -> Tokenizer:
    """BERT's uncased tokenizer with a vocabulary learnt from the texts; `WordPieces` gives the same pieces."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(handle_chinese_chars=False, strip_accents=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=n_pieces, special_tokens=list(SPECIAL_PIECES), limit_alphabet=120, show_progress=False
    )
    tokenizer.train_from_iterator(map(without_breaks, texts), trainer)
    return tokenizer


def _numbered(tokenizer: Tokenizer, texts: Sequence[str], labels: Sequence[int] | None) -> Texts:
    rows = []
    for start in range(0, len(texts), 2000):
        batch = tokenizer.encode_batch_fast([without_breaks(text) for text in texts[start : start + 2000]])
        rows += [np.array(row.ids, dtype=np.uint16) for row in batch]
    lengths = torch.tensor([len(row) for row in rows])
    kinds = torch.full_like(lengths, -1) if labels is None else torch.tensor(labels)
    return Texts(torch.from_numpy(np.concatenate(rows)), lengths, kinds)
