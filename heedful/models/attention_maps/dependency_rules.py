"""A few dependency relations of English by rules, without a parser."""

import re
from typing import NamedTuple, final

_WORD = re.compile(r"n't\b|\w+(?=n't\b)|\w+|[^\w\s]")
_LISTS = {
    "det": "a an the this that these those my your his her its our their some any no every each",
    "prep": "of in on at by with from into about for without through during between against after before",
    "aux": "will would can could should may might must shall do does did is are was were be been am has have had",
    "neg": "not n't never",
    "subject": "i you he she it we they who",
    "other": "and or but so than as if because that which what when where while to very too quite rather there",
}
_DEGREES = ("very", "too", "quite", "rather")
_KIND = {word: kind for kind, words in _LISTS.items() for word in words.split()}
_MODIFIER = re.compile(
    r"(good|bad|best|worst|great|new|old|little|big|long|first|last|own|same|other|whole|real|fine|poor|dull|bright"
    r"|\w+(ful|ous|ive|al|ic|able|ible|ish|less|ly|ed|ing|est|iest|ary|y))$"
)


@final
class ParsedWord(NamedTuple):
    """A word of a parsed text: its characters, the index of the word that it depends on, and the relation to it."""

    start: int
    end: int
    head: int
    relation: str


def parse_by_rules(text: str) -> list[ParsedWord]:
    """The relations det, prep, aux, neg and subject of words in closed lists; all others depend on themselves.

    A determiner and a preposition depend on the first later word of their phrase that does not look like an adjective
    or adverb; an auxiliary, a negation and a pronoun on the first later word that is neither one of them nor an adverb.
    These rules err often: they are for a first look. For results to publish, give the parse of a real parser.
    """
    matches = list(_WORD.finditer(text))
    words = [match.group().lower() for match in matches]
    parsed = []
    for index, (match, word) in enumerate(zip(matches, words, strict=True)):
        kind = _KIND.get(word, "")
        head = _noun_after(words, index) if kind in ("det", "prep") else _verb_after(words, index) if kind else None
        head, kind = (index, "") if head is None or kind == "other" else (head, kind)
        parsed.append(ParsedWord(match.start(), match.end(), head, kind))
    return parsed


def _noun_after(words: list[str], index: int) -> int | None:
    """The first later word that does not look like a modifier, or the last before the phrase ends."""
    last = None
    for place in range(index + 1, len(words)):
        word = words[place]
        if last is None and (word in _DEGREES or _KIND.get(word) == "det"):
            continue
        if word in _KIND or not word[0].isalnum():
            return last
        last = place
        if not _MODIFIER.match(word):
            return last
    return last


def _verb_after(words: list[str], index: int) -> int | None:
    for place in range(index + 1, len(words)):
        word = words[place]
        if word not in _KIND and word[0].isalnum() and not word.endswith("ly"):
            return place
        if _KIND.get(word, "" if word[0].isalnum() else "end") not in ("", "aux", "neg"):
            return None
    return None
