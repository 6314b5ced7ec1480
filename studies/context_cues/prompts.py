"""Prompts with a planted cue: a name, a gender, a number or a colour that stands in one sentence of the context."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

Style = Literal["chat", "story"]
NAMES = ("Maria", "Peter", "Laura", "Daniel", "Emma", "Robert", "Alice", "Martin", "Julia", "Simon", "Sarah", "Oliver")
ROLES = ("doctor", "baker", "captain", "gardener", "teacher", "lawyer", "painter", "driver", "nurse", "judge")
FEW = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COLOURS = ("red", "blue", "green", "yellow", "purple", "pink", "orange", "brown")
CHILDREN = ("Tom", "Lily", "Ben", "Anna", "Tim", "Sue", "Max", "Mia")
THINGS = ("ball", "hat", "car", "kite", "book", "bike", "box", "shirt")
PEOPLE = ("Alex", "Sam", "Robin", "Jamie", "Taylor", "Morgan", "Casey", "Jordan")
DISTRACTORS = {
    "chat": (
        "The house stands at the end of a quiet street.",
        "Lunch is served in the hall at noon.",
        "Many visitors come in the summer months.",
        "The garden behind the building is full of roses.",
        "A new roof was put on after the storm.",
        "Coffee and tea are free for all guests.",
        "The windows look out on the old park.",
        "There is a small shop next to the entrance.",
        "The bus stops right in front of the gate.",
        "On Sundays the place is closed.",
        "The walls were painted white last year.",
        "A large tree gives shade in the yard.",
    ),
    "story": (
        "The sun was warm and bright.",
        "There were many birds in the sky.",
        "The grass was soft and wet.",
        "It was a nice day at the park.",
        "The wind was blowing in the trees.",
        "There was a big tree near the house.",
        "The dog was sleeping on the mat.",
        "Mom was making lunch in the kitchen.",
        "A little bird sang a song.",
        "The flowers smelled very good.",
        "There was a pond with ducks.",
        "The clouds looked like sheep.",
    ),
}


@final
@dataclass(frozen=True)
class Planted:
    """A context of three sentences, one of them with the cue, and an output that ends with the cue."""

    kind: str
    sentences: tuple[str, ...]
    place: int
    """The sentence with the cue."""
    prompt: str
    output: str
    cue: str

    @property
    def context(self) -> str:
        """The sentences as one passage."""
        return " ".join(self.sentences)


def planted(style: Style, n: int, seed: int) -> Iterator[Planted]:
    """n prompts, of each kind as many."""
    rng = np.random.default_rng(seed)
    makers = _CHAT if style == "chat" else _STORY
    for number in range(n):
        kind = list(makers)[number % len(makers)]
        sentence, prompt, lead, cue = makers[kind](rng)
        place = int(rng.integers(3))
        sentences = rng.choice(DISTRACTORS[style], 2, replace=False).tolist()
        sentences.insert(place, sentence)
        yield Planted(kind, tuple(sentences), place, prompt, f"{lead}{cue}", cue.strip())


def _one(rng: np.random.Generator, of: tuple[str, ...]) -> str:
    return of[int(rng.integers(len(of)))]


def _name(rng: np.random.Generator) -> tuple[str, str, str, str]:
    role, name = _one(rng, ROLES), _one(rng, NAMES)
    return f"The {role}'s name is {name}.", f"What is the {role}'s name?", f"The {role}'s name is", f" {name}"


def _gender(rng: np.random.Generator) -> tuple[str, str, str, str]:
    name, female = _one(rng, PEOPLE), bool(rng.integers(2))
    role = _one(rng, ROLES)
    sentence = f"{name} the {role} is a {'woman' if female else 'man'}."
    return sentence, f"Is {name} a man or a woman?", f"{name} is a", " woman" if female else " man"


def _number(rng: np.random.Generator) -> tuple[str, str, str, str]:
    number, thing = _one(rng, FEW), _one(rng, ("rooms", "tables", "doors", "lamps", "chairs"))
    return f"There are {number} {thing} in it.", f"How many {thing} are there?", "There are", f" {number}"


def _story_name(rng: np.random.Generator) -> tuple[str, str, str, str]:
    name, kind = _one(rng, CHILDREN), _one(rng, ("dog", "cat", "child", "bear"))
    sentence = f"Once upon a time, there was a little {kind} named {name}."
    return sentence, f'The {kind} came home. "Where have you been,', "", f" {name}"


def _story_gender(rng: np.random.Generator) -> tuple[str, str, str, str]:
    name, female = _one(rng, PEOPLE), bool(rng.integers(2))
    sentence = f"{name} was a little {'girl' if female else 'boy'}."
    return sentence, f"One day, {name} was very happy because", "", " she" if female else " he"


def _story_number(rng: np.random.Generator) -> tuple[str, str, str, str]:
    name, number = _one(rng, CHILDREN), _one(rng, FEW[:4])
    thing = _one(rng, ("apples", "balls", "cookies", "toys"))
    return f"{name} had {number} {thing}.", f"{name} wanted to share the {thing}. {name} had", "", f" {number}"


def _story_colour(rng: np.random.Generator) -> tuple[str, str, str, str]:
    name, colour, thing = _one(rng, CHILDREN), _one(rng, COLOURS), _one(rng, THINGS)
    return f"{name} had a {colour} {thing}.", f"{name} liked to play. {name} picked up the", "", f" {colour}"


_CHAT = {"name": _name, "gender": _gender, "number": _number}
_STORY = {"name": _story_name, "gender": _story_gender, "number": _story_number, "colour": _story_colour}
