"""Characters and tokens as comparable letters, and the words of a text."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, final

from heedful.document import SPECIAL

Span = tuple[int, int]

_IDEOGRAPHS = "\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"
_ALONE = re.compile(f"[{_IDEOGRAPHS}{_KANA}]")
# Over one letter for the kind of each character: letters and digits with marks and inner apostrophes; flags; others.
_WORD = re.compile(r"(?:a[mj]*q(?=a)|[ad][mj]*)+|ff[mj]*|[^sad](?:[mt]|j[^sad]?)*")
_BROKEN = "\ufffd"
_MOST_FRAGMENTS = 8


@lru_cache(maxsize=1 << 16)
def letters_of(character: str) -> str:
    """The character without case, accents and width, which tokenizers may remove."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    without_letters = ("Mn", "Mc", "Me", "Cc", "Cf")
    kept = "".join(c for c in plain if not c.isspace() and unicodedata.category(c) not in without_letters)
    # A free-standing accent (´) is a space with a mark by Unicode's rules, yet there is something to see.
    return kept or (character if unicodedata.category(character) == "Sk" else "")


def fold(text: str) -> str:
    """The letters of a text: no case, accents, widths or white space."""
    return "".join(map(letters_of, text))


@lru_cache(maxsize=1 << 16)
def _kind(character: str) -> str:
    if character.isspace():
        return "s"
    if not letters_of(character):
        return "j" if character == "\u200d" else "m"
    if character in "'’-‐‑":
        return "q"
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return "f"
    if "\U0001f3fb" <= character <= "\U0001f3ff":
        return "t"
    in_run = unicodedata.category(character)[0] in "LN" and not _ALONE.match(character)
    return "o" if not in_run else "a" if character.isalpha() else "d"


def words_of(text: str) -> list[int]:
    """The word of each character of a text, whatever the tokens are; −1 for white space."""
    words = [SPECIAL] * len(text)
    for number, word in enumerate(_WORD.finditer("".join(map(_kind, text)))):
        words[word.start() : word.end()] = [number] * len(word.group())
    return words


@final
@dataclass(frozen=True)
class Reading:
    """A token, or the fewest tokens that make up whole characters, with their `surface` and comparable `letters`.

    `inner[t]` is the span of letters that token t shares in. An `unreadable` one, the unknown token or bytes that make
    no character, has no letters; nor has white space or a mark.
    """

    first: int
    last: int
    surface: str
    letters: str
    inner: tuple[Span, ...]
    unreadable: bool

    @property
    def is_space(self) -> bool:
        """Whether it is white space."""
        return self.surface.isspace() and not self.unreadable


def _shown(tokenizer: Any, tokens: list[str]) -> str:
    """The string of tokens within a text. A decoder treats the first token differently, so another precedes them."""
    lead, whole = tokenizer.convert_tokens_to_string(["a"]), tokenizer.convert_tokens_to_string(["a", *tokens])
    surface = whole[len(lead) :] if whole.startswith(lead) else tokenizer.convert_tokens_to_string(tokens)
    if len(tokens) == 1 and not tokens[0].strip("▁Ġ"):
        return " " * len(tokens[0])
    if tokens == [surface[1:]]:
        # The tokens were only joined: there is no decoder that removes the tokenizer's markers.
        plain = surface.replace("▁", " ").replace("Ġ", " ")
        return plain[3:] if plain.startswith(" ##") else plain if plain.strip() else plain[1:]
    return surface


def _prefixes(tokenizer: Any, names: list[str]) -> list[str]:
    """The strings of the first token, the first two, and so on up to whole characters; empty if there are none."""
    prefixes: list[str] = []
    for last in range(1, min(_MOST_FRAGMENTS, len(names)) + 1):
        prefixes.append(_shown(tokenizer, names[:last]))
        if prefixes[-1] and _BROKEN not in prefixes[-1]:
            return prefixes
    return []


def readings_of(tokenizer: Any, names: list[str], unknown: list[bool]) -> list[Reading]:
    """The readings of a text's tokens, in order."""
    readings: list[Reading] = []
    prefixes = [[] if unknown[t] else _prefixes(tokenizer, names[t : t + _MOST_FRAGMENTS]) for t in range(len(names))]
    first = 0
    while first < len(names):
        last = first + max(len(prefixes[first]), 1)
        while (
            not prefixes[first]
            and not unknown[first]
            and last < len(names)
            and not prefixes[last]
            and not unknown[last]
        ):
            last += 1
        surface = prefixes[first][-1] if prefixes[first] else names[first] if unknown[first] else ""
        letters = fold(surface) if prefixes[first] else ""
        # A token that ends within a character shares in it, though the decoder shows part of it or nothing.
        whole = [0, *(len(fold(prefix.rstrip(_BROKEN))) for prefix in prefixes[first] or [""] * (last - first))]
        inner = tuple((a, min(max(a + 1, b + (b < len(letters))), len(letters))) for a, b in pairwise(whole))
        readings.append(Reading(first, last, surface, letters, inner, unreadable=not prefixes[first]))
        first = last
    return readings
