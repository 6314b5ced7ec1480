"""The Stanford Sentiment Treebank (Socher et al., 2013): sentences of film reviews with a rating of every phrase."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.source import CONVERTED, from_hub, in_folder, read_parquet
from heedful.errors import BadInput

Phrase = tuple[int, int, int]
"""First word of a phrase, the word after its last, and its rating from 0 (negative) to 4 (positive); 2 is neutral."""

_PART = re.compile(r"\((\d)|([^()\s]+)|\)")
_SIGNS = {"-LRB-": "(", "-RRB-": ")"}


@final
@dataclass(frozen=True)
class Sst(Dataset):
    """Film sentences with rated phrases: 6,920 to train, 872 to validate, 1,821 to test.

    The class of a sentence is the rating of the whole sentence; neutral sentences are dropped. The rationale is our own
    construction, since people rated phrases but marked none: the words of each phrase with the polarity of the class
    that contains no smaller phrase of that polarity. So "lovely" is marked in "a lovely film", and both words of "not
    bad", because "bad" alone is negative. 26 % of the words are marked; in about 2 of 100 sentences all words are.
    """

    name: ClassVar[str] = "sst"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    def examples(self, split: Split) -> Sequence[Example]:
        local = f"sst/sst_trees_{split}.parquet"
        local_path = in_folder(local)
        path = local_path or from_hub("SST", local, "stanfordnlp/sst", f"ptb/{split}/0000.parquet", CONVERTED)
        listed = {"tokens": list, "span_start": list, "span_end": list, "span_label5": list}
        examples = []
        for number, row in enumerate(read_parquet(path, listed if local_path else {"ptb_tree": str})):
            try:
                example = _example(*(_from_lists(row) if local_path else _from_tree(row["ptb_tree"])))
            except (ValueError, TypeError, IndexError):
                raise BadInput(f"Row {number} of {path.name} is not a tree with labels from 0 to 4.") from None
            if example is not None:
                examples.append(example)
        return examples


def _example(words: list[str], phrases: list[Phrase]) -> Example | None:
    """The sentence with its class and the smallest phrases of that polarity; None if it is neutral."""
    (*_, whole) = (label for start, end, label in phrases if (start, end) == (0, len(words)))
    if any(not (0 <= start < end <= len(words) and 0 <= label <= 4) for start, end, label in phrases):
        raise ValueError
    side = whole - 2
    if side == 0:
        return None
    on_side = {(start, end) for start, end, label in phrases if (label - 2) * side > 0}
    least = [a for a in on_side if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in on_side)]
    places = [0]
    for word in words:
        places.append(places[-1] + len(word) + 1)
    spans = tuple((places[start], places[end] - 1) for start, end in sorted(least))
    return Example(" ".join(words), int(side > 0), spans)


def _from_lists(row: dict[str, Any]) -> tuple[list[str], list[Phrase]]:
    return row["tokens"], list(zip(row["span_start"], row["span_end"], row["span_label5"], strict=True))


def _from_tree(tree: str) -> tuple[list[str], list[Phrase]]:
    """Words and phrases of a tree in Penn Treebank brackets, such as (3 (2 a) (3 (3 lovely) (2 film)))."""
    words: list[str] = []
    phrases: list[Phrase] = []
    opened: list[tuple[int, int]] = []
    for part in _PART.finditer(tree):
        label, word = part.groups()
        if label is not None:
            opened.append((int(label), len(words)))
        elif word is not None:
            words.append(_SIGNS.get(word, word.replace("\\/", "/").replace("\\*", "*")))
        else:
            judged, start = opened.pop()
            phrases.append((start, len(words), judged))
    if opened:
        raise ValueError
    return words, phrases
