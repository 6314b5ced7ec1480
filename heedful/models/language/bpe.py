"""Byte-level byte-pair encoding: a vocabulary learnt by joining the most frequent pair of tokens, again and again.

References: Gage, *A new algorithm for data compression*, 1994; Sennrich, Haddow & Birch, *Neural machine translation of
rare words with subword units*, ACL 2016, arXiv:1508.07909; over bytes as in GPT-2 (Radford et al., 2019).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import inf
from typing import NamedTuple, final
from unicodedata import category

from heedful.errors import BadInput

END = "<|endoftext|>"
"""The token between texts, which is also the one that ends a text."""

_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_VISIBLE = (*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1))
BYTES = (*_VISIBLE, *(byte for byte in range(256) if byte not in _VISIBLE))
"""The bytes in GPT-2's order: first those that are visible characters."""
_SPELT = {byte: chr(byte if byte in _VISIBLE else 256 + n - len(_VISIBLE)) for n, byte in enumerate(BYTES)}
_BYTE = {character: byte for byte, character in _SPELT.items()}

Pair = tuple[int, int]


@final
class TokenSpan(NamedTuple):
    """A token of a text: its id and the characters that it is a part of."""

    id: int
    start: int
    end: int


@final
@dataclass(frozen=True)
class BytePairs:
    """A vocabulary of byte strings, and the pairs of tokens that are joined, the first one first.

    A text is divided into words, the words into bytes, and the pairs are joined in the order in which they were learnt.
    The special tokens have a name in place of bytes, and no text contains them.
    """

    tokens: tuple[bytes, ...]
    merges: tuple[Pair, ...]
    special: tuple[int, ...]
    """The end of a text comes first."""

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str | bytes) -> list[int]:
        """The tokens of a text or of any bytes."""
        text = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        return [number for word in divide_words(text) for number in self._tokens_of(word)]

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of tokens, without the special ones."""
        return b"".join(self.tokens[number] for number in ids if number not in self.special)

    def spans(self, text: str) -> list[TokenSpan]:
        """The tokens of a text, each with the characters that it is a part of; several may make up one character."""
        spans, start = [], 0
        for word in divide_words(text):
            # The character of each byte.
            origin = [n for n, character in enumerate(word, start) for _ in _as_bytes(character)]
            first = 0
            for number in self._tokens_of(word):
                last = first + len(self.tokens[number])
                spans.append(TokenSpan(number, origin[first], origin[last - 1] + 1))
                first = last
            start += len(word)
        return spans

    @cached_property
    def ranks(self) -> Mapping[Pair, tuple[int, int]]:
        """For each pair its place in the order, and the token that it becomes."""
        number = {token: n for n, token in enumerate(self.tokens) if n not in self.special}
        return {
            (left, right): (rank, number[self.tokens[left] + self.tokens[right]])
            for rank, (left, right) in enumerate(self.merges)
        }

    @cached_property
    def _tokens_of(self) -> Callable[[str], tuple[int, ...]]:
        """The tokens of a word; the common words of long texts are remembered."""
        return lru_cache(maxsize=1 << 16)(self._joined)

    @cached_property
    def byte_tokens(self) -> list[int]:
        number = {token: n for n, token in enumerate(self.tokens) if n not in self.special}
        return [number[bytes([byte])] for byte in range(256)]

    def _joined(self, word: str) -> tuple[int, ...]:
        ids, ranks = [self.byte_tokens[byte] for byte in _as_bytes(word)], self.ranks
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: ranks[pair][0] if pair in ranks else inf)
            if pair not in ranks:
                break
            ids = join_pair(ids, pair, ranks[pair][1])
        return tuple(ids)


def divide_words(text: str) -> list[str]:
    """The words of a text as GPT-2 divides it, each with the space before it; joined they are the text."""
    return _word_pattern().findall(text)


@cache
def _word_pattern() -> re.Pattern[str]:
    r"""GPT-2's pattern `'s|…| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` in the syntax of `re`.

    Differs from the source: what is a letter follows the Unicode version of Python.
    """
    # \d has only the decimal digits; numbers such as ² and Ⅷ would be letters. There are none above these planes.
    other = "".join(chr(n) for n in range(0x20000) if category(chr(n)) in ("No", "Nl"))
    letter, number, rest = rf"[^\W\d_{other}]", rf"[\d{other}]", rf"(?:_|[^\w{_SPACE}])"
    return re.compile(rf"'(?:[stmd]|re|ve|ll)| ?{letter}+| ?{number}+| ?{rest}+|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+")


def _as_bytes(text: str) -> bytes:
    # A byte that is not UTF-8 was decoded to half of a surrogate pair.
    return text.encode("utf-8", "surrogateescape")


def join_pair(ids: Sequence[int], pair: Pair, joined: int) -> list[int]:
    """The tokens with every occurrence of the pair as one token, from left to right."""
    after, n = [], 0
    while n < len(ids):
        is_pair = ids[n] == pair[0] and n + 1 < len(ids) and ids[n + 1] == pair[1]
        after.append(joined if is_pair else ids[n])
        n += 1 + is_pair
    return after


def learn_byte_pairs(texts: Iterable[str], n_tokens: int) -> BytePairs:
    """Learns a vocabulary: all bytes, then the most frequent pair of tokens as a new token, until there are enough.

    Of pairs that are equally frequent the one with the smaller ids is joined first, as in the library `tokenizers`. The
    last token is the end of a text.
    """
    if n_tokens <= len(BYTES):
        raise BadInput(f"A vocabulary has the 256 bytes and the end of a text; n_tokens {n_tokens} is too small.")
    counts = Counter(word for text in texts for word in divide_words(text))
    number = {byte: n for n, byte in enumerate(BYTES)}
    words = [[number[byte] for byte in _as_bytes(word)] for word in counts]
    tokens, merges = _learn(words, list(counts.values()), n_tokens - 1)
    return BytePairs((*tokens, END.encode()), tuple(merges), (len(tokens),))


def _learn(words: list[list[int]], counts: list[int], n_tokens: int) -> tuple[list[bytes], list[Pair]]:
    """Tokens and merges; `words` are changed as their pairs are joined."""
    tokens, merges = [bytes([byte]) for byte in BYTES], []
    number = {token: n for n, token in enumerate(tokens)}
    n_pairs, where = Counter[Pair](), defaultdict[Pair, set[int]](set)
    for place, word in enumerate(words):
        for pair in pairwise(word):
            n_pairs[pair] += counts[place]
            where[pair].add(place)
    queue = [(-n, pair) for pair, n in n_pairs.items()]
    heapify(queue)
    while queue and len(tokens) < n_tokens:
        n, pair = heappop(queue)
        if n_pairs[pair] != -n:
            # It has become rarer since it was put there; whatever becomes more frequent is put there again.
            if 0 < n_pairs[pair] < -n:
                heappush(queue, (-n_pairs[pair], pair))
            continue
        joined = tokens[pair[0]] + tokens[pair[1]]
        if joined not in number:
            number[joined] = len(tokens)
            tokens.append(joined)
        merges.append(pair)
        grown: set[Pair] = set()
        for place in where.pop(pair):
            before, after = words[place], join_pair(words[place], pair, number[joined])
            for old in pairwise(before):
                n_pairs[old] -= counts[place]
            for new in pairwise(after):
                n_pairs[new] += counts[place]
                if number[joined] in new:
                    where[new].add(place)
                    grown.add(new)
            words[place] = after
        for new in grown:
            heappush(queue, (-n_pairs[new], new))
    return tokens, merges


def spelt(token: bytes) -> str:
    """A token in GPT-2's spelling: every byte as a visible character, so that a space is Ġ."""
    return "".join(_SPELT[byte] for byte in token)


def unspelt(name: str) -> bytes:
    """The bytes of a token in GPT-2's spelling."""
    return bytes(_BYTE[character] for character in name)
