"""Texts for experiments: real reviews where they are at hand, and made-up ones that need nothing."""

from typing import Literal, NamedTuple, final

import numpy as np

from heedful.datasets.imdb import Imdb
from heedful.datasets.source import in_folder

Origin = Literal["IMDB", "made up"]

FIGURE_1 = "attention based explanations are popular but questionable"

FIGURE_4 = (
    "i wanted to like this film and for the first ten minutes i almost did . then the plot stops making sense , "
    "the jokes fall flat and the actors look as bored as i was . nobody seems to care about the story , the music "
    "is loud , the dialogue is awful and the ending is stupid . my friend left before it was over . "
    "what a waste of money ! the only good thing is one scene with an old dog , which made me smile , but "
    "it cannot save this terrible mess ."
)
"""A review of 99 tokens, 71 of them distinct, called negative: as the caption of the paper's Figure 4 says of its own,
which is not printed."""

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
    """So many IMDB test reviews, drawn by the seed, if HEEDFUL_DATA has them, else made-up ones; never the network."""
    if in_folder("imdb/test.parquet") is None:
        return "made up", made_up_reviews(n, seed)
    examples = Imdb().examples("test")
    order = np.random.default_rng(seed).permutation(len(examples))[:n]
    return "IMDB", [Review(examples[index].text, examples[index].label) for index in order]


def made_up_reviews(n: int, seed: int = 0) -> list[Review]:
    """Made-up reviews of 4 to 9 sentences, as many negative as positive; a sentence in four takes the other side."""
    rng = np.random.default_rng(seed)
    return [Review(_made_up(index % 2, rng), index % 2) for index in range(n)]


def _made_up(label: int, rng: np.random.Generator) -> str:
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
