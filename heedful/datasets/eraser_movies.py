"""Film reviews with human rationales (Zaidan et al., 2007; DeYoung et al., 2020, arXiv:1911.03429)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.source import CONVERTED, check_labels, from_hub, in_folder, read_parquet
from heedful.errors import BadInput

Places = list[tuple[int, int]]
"""The start and end character of each word of a text."""


@final
@dataclass(frozen=True)
class EraserMovies(Dataset):
    """Film reviews with rationales: 1,600 to train, 200 to validate, 199 to test.

    In the training and validation splits people marked some of the evidence, in the test split all of it: 9 %, 7 % and
    30 % of the words. Do not compare values of different splits. One training review has no rationale; 20 empty spans
    of the test split are dropped. The hub's copy quotes the marked phrases without their positions: each is searched in
    the text, and one that occurs more than once (1 in 100) is assigned to its first free occurrence.
    """

    name: ClassVar[str] = "eraser-movies"
    classes: ClassVar[tuple[str, ...]] = ("negative", "positive")

    def examples(self, split: Split) -> Sequence[Example]:
        local = f"eraser_movies/{'val' if split == 'validation' else split}.parquet"
        local_path = in_folder(local)
        path = local_path or from_hub(
            "ERASER movies", local, "eraser-benchmark/movie_rationales", f"default/{split}/0000.parquet", CONVERTED
        )
        text, evidence = ("text", "evidence_spans") if local_path else ("review", "evidences")
        rows = read_parquet(path, {text: str, "label": int, evidence: list})
        check_labels(path, [row["label"] for row in rows], self.classes)
        examples = []
        for number, row in enumerate(rows):
            words = [match.span() for match in re.finditer(r"\S+", row[text])]
            try:
                spans = _spans(words, row[evidence]) if local_path else _looked_up(row[text], words, row[evidence])
            except (TypeError, ValueError, IndexError, AttributeError):
                raise BadInput(f"Row {number} of {path.name} has a rationale that is not in its text.") from None
            examples.append(Example(row[text], row["label"], spans or None))
        return examples


def _spans(words: Places, evidence: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """The span of characters from the first to the last word of each passage."""
    spans = []
    for first, end in evidence:
        if not 0 <= first <= end <= len(words):
            raise ValueError
        if first < end:
            spans.append((words[first][0], words[end - 1][1]))
    return tuple(sorted(spans))


def _looked_up(text: str, words: Places, evidence: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """The same for passages that are only quoted, without positions."""
    spelt = [text[start:end] for start, end in words]
    taken: list[tuple[int, int]] = []
    for quoted in (phrase.split() for phrase in evidence):
        if not quoted:
            continue
        places = [n for n, word in enumerate(spelt) if word == quoted[0] and spelt[n : n + len(quoted)] == quoted]
        used = set(chain.from_iterable(range(*place) for place in taken))
        free = [n for n in places if used.isdisjoint(range(n, n + len(quoted)))]
        first = (free or places)[0]
        taken.append((first, first + len(quoted)))
    return _spans(words, dict.fromkeys(taken))
