"""Texts for experiments: real reviews if they are available, and synthetic ones."""

import re
from typing import Literal, NamedTuple, final

import numpy as np

from heedful.datasets import Example
from heedful.datasets.imdb import Imdb
from heedful.datasets.source import in_folder
from heedful.experiments.workspace import Workspace

Origin = Literal["IMDB", "synthetic"]

FIGURE_1 = "attention based explanations are popular but questionable"

FIGURE_4 = (
    "i wanted to like this film and for the first ten minutes i almost did . then the plot stops making sense , "
    "the jokes fall flat and the actors look as bored as i was . nobody seems to care about the story , the music "
    "is loud , the dialogue is awful and the ending is stupid . my friend left before it was over . "
    "what a waste of money ! the only good thing is one scene with an old dog , which made me smile , but "
    "it cannot save this terrible mess ."
)
"""A review of 99 tokens, 71 of them distinct, predicted negative, as in the caption of the paper's Figure 4, whose text
is not printed."""

_THINGS = ("plot", "story", "script", "acting", "cast", "music", "camera work", "ending", "dialogue", "first half")
_GOOD = (
    "wonderful",
    "excellent",
    "superb",
    "touching",
    "brilliant",
    "perfect",
    "funny",
    "beautiful",
    "great",
    "moving",
)
_BAD = ("awful", "boring", "terrible", "dull", "poor", "stupid", "weak", "laughable", "bad", "pointless")
_FRAMES = (
    "the {thing} is {word}",
    "i found the {thing} really {word}",
    "what a {word} {thing}",
    "everyone said that the {thing} would be {word} and it was",
    "with such a {word} {thing} it is hard to look away",
    "a {word} film about two friends and an old house",
)
_FILLERS = (
    "we saw it on a rainy evening in a small town",
    "it was made in the nineties by people i had never heard of",
    "my brother watched it with me and his dog",
    "it runs for about two hours",
    "the two of them drive across the country in a red car",
    "there is a scene in a kitchen that goes on for some time",
)


@final
class Review(NamedTuple):
    """A text and whether it is negative (0) or positive (1)."""

    text: str
    label: int


def reviews(n: int, seed: int = 0) -> tuple[Origin, list[Review]]:
    """n IMDB test reviews, drawn with the seed, if HEEDFUL_DATA has them, otherwise synthetic ones; never downloads."""
    if in_folder("imdb/test.parquet") is None:
        return "synthetic", synthetic_reviews(n, seed)
    examples = Imdb().examples("test")
    order = np.random.default_rng(seed).permutation(len(examples))[:n]
    return "IMDB", [Review(examples[index].text, examples[index].label) for index in order]


def review_texts_or(workspace: Workspace, n: int) -> tuple[str, list[str]]:
    """Where the texts come from, and n reviews; the user's one text if there is one."""
    if workspace.text is not None:
        return "your text", [workspace.text]
    origin, chosen = reviews(n, workspace.seed)
    return origin, [review.text for review in chosen]


def synthetic_reviews(n: int, seed: int = 0) -> list[Review]:
    """Synthetic reviews of 4 to 9 sentences, half of them negative; one sentence in four has the opposite polarity."""
    rng = np.random.default_rng(seed)
    return [Review(_synthetic(index % 2, rng), index % 2) for index in range(n)]


def marked_reviews(n: int, seed: int = 0) -> list[Example]:
    """Synthetic reviews, in each of which the words of its label's side are the rationale."""
    marked = []
    for text, label in synthetic_reviews(n, seed):
        words = re.compile(rf"\b({'|'.join((_BAD, _GOOD)[label])})\b")
        marked.append(Example(text, label, tuple(match.span() for match in words.finditer(text))))
    return marked


def _synthetic(label: int, rng: np.random.Generator) -> str:
    sides = ((_BAD, _GOOD), (_GOOD, _BAD))[label]
    sentences = []
    for number in range(rng.integers(4, 10)):
        if number and rng.random() < 0.3:
            sentences.append(str(rng.choice(_FILLERS)))
            continue
        # The first sentence keeps the label's side, so that no text is without evidence for it.
        words = sides[int(number > 0 and rng.random() < 0.25)]
        frame = str(rng.choice(_FRAMES))
        sentences.append(frame.format(thing=rng.choice(_THINGS), word=rng.choice(words)))
    return " . ".join(sentences) + " ."
