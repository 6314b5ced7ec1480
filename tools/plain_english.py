"""Finds words that the glossary of the style guide bans: python -m tools.plain_english [PATH …]

It checks the strings, docstrings and comments of the whole package, the names that it binds, the templates and scripts
of its pages, README.md and docs/, but no generated pages (the gallery). Each finding is a line with the plain word.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, final

ROOT = Path(__file__).parents[1]
PLACES = ("heedful", "README.md", "docs")
TEXTS = {".md", ".html", ".jinja", ".j2", ".js"}
GENERATED = ("docs/gallery.md", "docs/reproduced")

PHRASES = {
    r"thinn(?:ed|ing)": "masked",
    r"(?:told|tells?|telling) (?:\w+ ){0,3}apart": "distinguishable, distinguish",
    r"stand-ins?": "replacement (token)",
    r"stand(?:s|ing)? in (?:its|their|the|whose) (?:place|stead)": "replaces",
    r"lines? through (?:all |few |the same |the )*(?:answers?|masks?|sets?|texts?|them)": "linear surrogate",
    r"on trial|trials?(?! and error)": "evaluation",
    r"courts?|judges?(?= say)": "evaluation, benchmark",
    r"mend(?:s|ed|ing)?": "correct, corrected, fix",
    r"how sure": "95 % confidence interval",
    r"efforts?": "budget, time limit, memory limit",
    r"what (?:a|the) run may take": "budget, time limit, memory limit",
    r"ask(?:s|ed|ing)? (?:\w+ ){0,2}masks?": "evaluate the model on masks",
    r"masks? (?:that )?(?:is|are|was|were|be) (?:\w+ )?asked": "masks are evaluated",
    r"answers? to (?:the |all )?(?:masks?|masked|thinned)": "outputs for masks",
    r"what (?:a|the) model (?:said|says)": "the model's output",
    r"(?:source of|global|all|by the same|drawn by|carry no) chance": "random generator, at random",
    r"for want of": "without",
    r"(?:all|nothing|what) (?:there )?(?:is|was) (?:to know|known) of": "say what it is, plainly",
    r"while it lasts": "inside this context",
    r"made[- ]up": "synthetic",
    r"(?:is|are|was|were|be) held against": "is compared with",
    r"(?:is|are|was|were) asked for": "is requested",
    r"(?:was|were|been) read in(?=[^\w ]|$)": "was imported",
    r"speaks? (?:for|against)": "is evidence for, against",
    r"but for rounding": "up to rounding",
    r"(?:has|have) no room": "is beyond the limit",
    r"taken apart": "separated",
    r"put to the test": "tested",
    r"(?:is|are|be) at hand": "is available",
    r"(?<!there\s)(?:is|are) no (?:class|tree|span|token|tokens|letter|metric|pieces)": "is not a",
    r"pictures? (?:of \w+ )*(?:survives?|holds?)": "results hold",
    r"(?:number|row|dot) a (?:unit|token|word|text|head|class|review|model)": "per",
}
NAMES = {
    "found": "what it holds: scores, explanation, match",
    "said": "message, text",
    "chance": "rng",
    "told": "what it holds",
    "thinned": "masked",
    "effort": "budget",
    "trial": "evaluation",
    "mended": "corrected",
}
_PHRASE = re.compile("|".join(rf"(\b(?:{phrase})\b)" for phrase in PHRASES).replace(" ", r"\s+"), re.IGNORECASE)
_PLAIN = tuple(PHRASES.values())


@final
class Finding(NamedTuple):
    """A banned word or name, where it is, and what to write instead."""

    path: Path
    line: int
    word: str
    plain: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}; write: {self.plain}"


def check_text(path: Path, text: str, first_line: int = 1) -> Iterator[Finding]:
    """The banned phrases of a text, those too that a line break cuts."""
    for match in _PHRASE.finditer(text):
        line = first_line + text.count("\n", 0, match.start())
        yield Finding(path, line, " ".join(match.group().split()), _PLAIN[(match.lastindex or 1) - 1])


def check_code(path: Path, source: str) -> Iterator[Finding]:
    """The banned phrases of the strings and comments of a module, and the banned names that it binds."""
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            yield from check_text(path, token.string, token.start[0])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from check_text(path, node.value, node.lineno)
        for name in bound_names(node):
            for word in re.findall(r"[A-Z]?[a-z]+", name):
                if word.lower() in NAMES:
                    yield Finding(path, getattr(node, "lineno", 1), name, NAMES[word.lower()])


def bound_names(node: ast.AST) -> Iterable[str]:
    """The names that a piece of code gives to something: variables, arguments, functions, classes."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return []


def files_of(places: Iterable[Path]) -> Iterator[Path]:
    """The files to check: modules, pages and templates."""
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            generated = any(path.is_relative_to(ROOT / name) for name in GENERATED)
            if path.suffix in {".py", *TEXTS} and not generated:
                yield path


def findings(places: Iterable[Path]) -> Iterator[Finding]:
    """Every banned word in the files of some places."""
    for path in files_of(places):
        text = path.read_text(encoding="utf-8")
        yield from check_code(path, text) if path.suffix == ".py" else check_text(path, text)


def main() -> None:
    """Prints the findings, and exits with code 1 if there are any."""
    places = [Path(word).resolve() for word in sys.argv[1:]] or [ROOT / place for place in PLACES]
    lines = [str(finding._replace(path=finding.path.relative_to(ROOT))) for finding in findings(places)]
    print("\n".join([*lines, f"{len(lines)} words that the glossary bans."]))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
