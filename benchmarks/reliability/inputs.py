"""Random texts and settings: mostly what people write, with a share of what nobody should."""

import random
from collections.abc import Mapping
from dataclasses import Field, fields
from math import inf, nan
from typing import Any, Literal, get_args, get_origin

import numpy as np

from heedful.document import ABSENCES, UNITS, Pair

WORDS = (
    *("a", "an", "the", "this", "that", "it", "film", "movie", "story", "plot", "actor", "actress", "music"),
    *("scene", "ending", "dialogue", "camera", "director", "was", "is", "are", "were", "not", "never", "very"),
    *("too", "far", "but", "and", "or", "so", "good", "bad", "great", "dull", "bright", "awful", "wonderful"),
    *("terrible", "fine", "long", "short", "slow", "funny", "sad", "boring", "brilliant", "love", "hate"),
    *("like", "watch", "again", "waste", "time", "man", "woman", "dog", "cat", "ball", "red", "big", "little"),
    *("house", "day", "once", "upon", "friend", "happy", "play", "park", "you", "idiot", "stupid", "kind"),
    *("people", "they", "went", "to", "see", "with", "their", "of", "in", "on", "at"),
)
ODD = (
    *("😀", "👩‍👩‍👧‍👦", "e\u0301", "a\u0300\u0316b", "\u200b", "\u200dx", "\ufeff", "שלום", "مرحبا", "你好世界"),
    *("한국어", "ﬁne", "İstanbul", "ß", "can't", "U.S.A.", "3.14", "1,000,000", "don’t", "well-known", "#tag"),
    *("@name", "https://a.b/c?d=e&f", "C++", "a/b", "<b>bold</b>", "<script>alert(1)</script>", "[bold]"),
    *("[/]", "{{ x }}", "%s", "\\n", "&amp;", "'", '"', "`", "--", "[CLS]", "[SEP]", "[MASK]", "[UNK]"),
    *("[PAD]", "<s>", "</s>", "<unk>", "<0x0A>", "▁ball", "##ing", "Ġfilm", "...", "?!", ";", "—", "(", ")"),
    *("、", "。", "\t", "\n", "\r\n", "\u2028", "\x85", "\x1b[31m", "\x07", "٣", "½", "𝒜", "Ω"),
)
BROKEN = ("\ud800", "film\udc80 good", "\udfff\ud800", "good \0 film", "\0", "fine\uddbffar")
EMPTY = ("", " ", "\n\t", "...", "?", "😀", "\u200b", "zzzzqqq xxyyzz", "-", "\u3000")
NOT_TEXTS: tuple[Any, ...] = (
    None,
    3,
    2.5,
    b"good film",
    True,
    {"text": "good film"},
    {"good"},
    object,
    ...,
    np.zeros(3),
)
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 7, 99, 2**31, 10**12, 10**400, -(10**400), 0.5, -0.5, nan, inf, -inf, 1e300, 1e-300),
    *(-1e-9, "", " ", "x", "nan", "inf", "1", "all", "auto", "-1", "1e999", "\ud800", "\0", "é", "lime", "[]"),
    *("x" * 500, [], [1], ["a", "b"], {}, {"a": 1}, (), (1, 2), set(), b"", b"x", ..., print, Pair, 1j),
    *(np.array([1, 2]), np.array(3), np.array([]), np.float64(0.5), np.int64(3), np.float32("nan")),
    *(np.str_("word"),),
)
COUNTS: Mapping[str, tuple[Any, ...]] = {
    "n_samples": (10, 16, 33, 60, 100, 150),
    "budget": (100, 150, 200),
    "n_steps": (1, 2, 5, 16),
}
"""Settings that determine the cost: always given, and small."""
CHOICES: Mapping[str, tuple[Any, ...]] = {
    "absence": (
        *(name for name in ABSENCES if name != "replace:WORD"),
        "replace:film",
        "replace:zzzz",
        "replace:",
        "gone",
    ),
    "head": ("all", 0, 1, 5, -1, 99),
    "layer": ("all", 0, 1, -1, 99),
    "seed": (0, 1, 7, 2**32 - 1, 2**32, 2**63, -1),
    "tolerance": (0.5, 0.1, 0.01, 1e-4, 0.0),
    "confidence": (0.5, 0.9, 0.95, 0.999, 0.0, 1.0),
    "width": (1, 2, 3, 10, 1000),
}


def draw_text(rng: random.Random, n_long: int) -> Any:
    """A text: short as a rule, at times up to `n_long` words; rarely empty, broken, or no text at all."""
    share = rng.random()
    if share < 0.70:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 10)))
    if share < 0.82:
        parts = rng.choices(ODD, k=rng.randint(1, 4)) + rng.choices(WORDS, k=rng.randint(0, 6))
        rng.shuffle(parts)
        return rng.choice((" ", "", " ", "  ")).join(parts)
    if share < 0.87:
        return " ".join(rng.choices(rng.sample(WORDS, 2), k=rng.randint(2, 12)))
    if share < 0.91:
        return rng.choice((" . ", "! ", ", ")).join(
            draw_text_of(rng, rng.randint(1, 4)) for _ in range(rng.randint(2, 4))
        )
    if share < 0.94:
        return rng.choice(EMPTY)
    if share < 0.96:
        return rng.choice((*BROKEN, f"good {rng.choice(BROKEN)} film"))
    if share < 0.975:
        return draw_text_of(rng, rng.randint(n_long // 4, n_long))
    if share < 0.99:
        return Pair(draw_text_of(rng, 4), rng.choice((draw_text_of(rng, 3), "", "zzzz")))
    if share < 0.995:
        return [draw_text_of(rng, rng.randint(1, 5)) for _ in range(rng.randint(0, 3))]
    return rng.choice(NOT_TEXTS)


def draw_text_of(rng: random.Random, n_words: int) -> str:
    """So many plain words."""
    return " ".join(rng.choices(WORDS, k=n_words))


def draw_settings(rng: random.Random, member: type, hostile: float = 0.04) -> dict[str, Any]:
    """Some of the member's settings: values that it may have, and a small share of values that it may not."""
    settings: dict[str, Any] = {}
    for field in fields(member):
        if field.name in COUNTS:
            settings[field.name] = rng.choice(COUNTS[field.name])
        elif field.name == "unit":
            settings["unit"] = rng.choice((*("word", "token", "type", "segment", "sentence") * 4, *UNITS))
        elif rng.random() < 0.3:
            settings[field.name] = draw_value(rng, field)
        if rng.random() < hostile / 2:
            settings[field.name] = rng.choice(HOSTILE)
    if rng.random() < hostile / 4:
        settings[rng.choice(("n_sample", "question", "name", "self", "method_", "documents", "", "unit "))] = 1
    return settings


def draw_value(rng: random.Random, field: "Field[Any]") -> Any:
    """A value of the setting's type."""
    if field.name in CHOICES:
        return rng.choice(CHOICES[field.name])
    if get_origin(field.type) is Literal:
        return rng.choice(get_args(field.type))
    if field.type is int:
        return rng.choice((0, 1, 2, 3, 5, 10))
    if field.type is float:
        return rng.choice((0.0, 0.1, 0.5, 0.9, 1.0, 2.0, 25.0))
    return field.default


def draw_request(rng: random.Random, classes: tuple[str, ...]) -> dict[str, Any]:
    """Which scalar is explained, and within which limits."""
    request: dict[str, Any] = {}
    target, against = rng.sample(range(len(classes)), 2)
    if rng.random() < 0.3:
        request["target"] = rng.choice(
            (target, target, classes[target], classes[target], target, classes[target], -1, "no")
        )
    if "target" in request and rng.random() < 0.3:
        request["against"] = rng.choice((against, classes[against], against, target))
    if rng.random() < 0.1:
        request["scale"] = rng.choice(("logit", "log-probability", "log-probability", "log-probability", "odds"))
    if rng.random() < 0.05:
        request["memory"] = rng.choice(("2GB", "500MB", "1kB", 10**9, 1.5e9, "much"))
    if rng.random() < 0.05:
        request["seconds"] = rng.choice((0.05, 1, 30, 1e-9, 0))
    if rng.random() < 0.03:
        request["half"] = rng.choice((True, False))
    if rng.random() < 0.03:
        request[rng.choice(("target", "against", "scale", "memory", "seconds", "half"))] = rng.choice(HOSTILE)
    return request
