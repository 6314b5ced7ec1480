"""A byte-level vocabulary with the methods of a Hugging Face tokenizer that alignment and the names of tokens need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from heedful.models.language.bpe import BytePairs, spelt, unspelt


@final
@dataclass(frozen=True)
class ByteTokenizer:
    """Reads and spells by a vocabulary of byte pairs, with the names of Hugging Face's methods."""

    vocabulary: BytePairs
    unk_token_id: None = None

    def __call__(self, text: str, **_options: object) -> dict[str, list[int]]:
        """The ids of a text, without special tokens."""
        return {"input_ids": self.vocabulary.encode(text.encode("utf-8", "replace"))}

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> str | list[str]:
        """Tokens in GPT-2's spelling."""
        return self._names[ids] if isinstance(ids, int) else [self._names[number] for number in ids]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """The text of tokens in GPT-2's spelling; bytes that make no character become �."""
        return b"".join(map(unspelt, tokens)).decode("utf-8", "replace")

    def get_vocab(self) -> Mapping[str, int]:
        """The number of every token."""
        return self._numbers

    @cached_property
    def _names(self) -> list[str]:
        return [spelt(token) for token in self.vocabulary.tokens]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._names)}
