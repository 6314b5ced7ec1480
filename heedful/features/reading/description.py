"""What is known about the features of a dictionary from the texts that they are active in."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Int

from heedful.errors import BadInput, CannotWrite, in_short
from heedful.explanations import load_pandas
from heedful.features.reading.excerpts import Excerpt
from heedful.features.reading.raised import Output
from heedful.features.reading.token_rules import TokenRule
from heedful.run_folder import RunFolder, path_of, sealed, write_atomically, write_file
from heedful.statistics.quantity import Quantity

NO_RULE = "no rule"


@final
@dataclass(frozen=True, eq=False)
class Description:
    """One feature: where it is active, what it does to the outputs, which features are near, and a token rule."""

    feature: int
    density: float
    """The share of tokens in which it is active."""
    mean: float
    """The mean activation where it is active."""
    largest: float
    n_tokens: int
    """The tokens in which it is active."""
    n_texts: int
    """The texts in which it is active."""
    histogram: Int[np.ndarray, "bin"]
    """How many active tokens there are in each of equal parts of the range from 0 to the largest activation."""
    excerpts: tuple[Excerpt, ...]
    """The strongest texts, and a few from lower quantiles."""
    raised: tuple[Output, ...]
    lowered: tuple[Output, ...]
    neighbours: tuple[tuple[int, float], ...]
    """The features whose directions have the largest cosine with this one, and that cosine."""
    rules: tuple[TokenRule, ...]
    """Rules of tokens that predict where it is active, or strongly active: those that do well, the label's first."""

    @property
    def rule(self) -> TokenRule | None:
        """The rule that is the label; None if none does well enough."""
        return self.rules[0] if self.rules else None

    @property
    def label(self) -> str:
        """The rule in short, or "no rule"."""
        return NO_RULE if self.rule is None else self.rule.label

    @property
    def words(self) -> str:
        """Everything that a search looks through: the rule's values, strongest tokens, raised and lowered outputs."""
        outputs = (output.name for output in (*self.raised, *self.lowered))
        strongest = (excerpt.tokens[excerpt.peak].strip() for excerpt in self.excerpts)
        return " ".join(dict.fromkeys((*(value for rule in self.rules for value in rule.values), *strongest, *outputs)))

    def __repr__(self) -> str:
        auroc = "" if self.rule is None else f", AUROC {self.rule.auroc}"
        return f"<feature {self.feature}: {self.label[:150]}{auroc}; active in {self.density:.2%} of tokens>"

    @property
    def details(self) -> str:
        """The feature on several lines: its rule, its strongest texts, its outputs and the nearest features."""
        strongest = [excerpt for excerpt in self.excerpts if excerpt.quantile is None][:_EXCERPTS]
        outputs = {"Raises": self.raised, "Lowers": self.lowered}
        near = ", ".join(f"{number} ({cosine:.2f})" for number, cosine in self.neighbours)
        lines = [
            repr(self),
            f"Mean {self.mean:.3g} where it is active, largest {self.largest:.3g}; {self.n_texts:,} texts.",
            "Strongest texts:",
            *(f"  {' '.join(repr(excerpt)[1:-1].split())}" for excerpt in strongest),
            *(
                f"{verb}: {', '.join(f'{output.name.strip()} {output.effect:+.3g}' for output in own)}"
                for verb, own in outputs.items()
                if own
            ),
            *([f"Nearest features, with the cosine: {near}"] if near else []),
        ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "histogram": self.histogram.tolist(),
            "label": self.label,
            "rules": [_rule_as_dict(rule) for rule in self.rules],
            "raised": [[output.name, *Quantity(*output[1:]).plain()] for output in self.raised],
            "lowered": [[output.name, *Quantity(*output[1:]).plain()] for output in self.lowered],
            "neighbours": [list(pair) for pair in self.neighbours],
            "excerpts": [
                {
                    "text": excerpt.name,
                    "tokens": excerpt.tokens,
                    "activations": [float(f"{value:.6g}") for value in excerpt.activations],
                    "peak": excerpt.peak,
                    "quantile": excerpt.quantile,
                }
                for excerpt in self.excerpts
            ],
        }


_EXCERPTS = 5
_NUMBERS = ("feature", "density", "mean", "largest", "n_tokens", "n_texts")
_MEASURES = ("auroc", "precision", "recall")


def _rule_as_dict(rule: TokenRule) -> dict[str, Any]:
    measures = {name: getattr(rule, name).plain() for name in _MEASURES}
    plain = {"density": rule.density, "threshold": rule.threshold}
    return {"aspect": rule.aspect, "values": rule.values, "scores": rule.scores, **plain, **measures}


@final
@dataclass(frozen=True, eq=False)
class Descriptions:
    """Descriptions of the features of a dictionary that are active in some texts, by their numbers."""

    items: tuple[Description, ...]
    width: int
    """The number of features of the dictionary, active or not."""
    n_texts: int
    n_tokens: int
    data: str
    """What the texts are."""
    dictionary: str
    """Which dictionary it is: its layer, model and fingerprint."""
    readout: str
    """How the raised outputs were computed, and what that leaves out; or why there are none."""
    about_rules: str
    """How rules were made, and below which quality none is shown."""

    @cached_property
    def _by_number(self) -> Mapping[int, Description]:
        return {item.feature: item for item in self.items}

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Description]:
        return iter(self.items)

    def __getitem__(self, feature: int | np.integer) -> Description:
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < self.width:
            raise BadInput(f"The dictionary has features 0 to {self.width - 1:,}; {feature!r} was given.")
        if int(feature) not in self._by_number:
            raise BadInput(f"Feature {feature} is not described: it is active in none of the tokens that were read.")
        return self._by_number[int(feature)]

    def search(self, words: str) -> "Descriptions":
        """Those whose rule, strongest tokens, raised or lowered outputs contain the words, in upper or lower case."""
        if not isinstance(words, str) or not words.strip():
            raise BadInput('Give the words to search for, such as search("happy").')
        wanted = words.casefold().split()
        return self._only(item for item in self.items if all(word in item.words.casefold() for word in wanted))

    def only(self, features: Iterable[int]) -> "Descriptions":
        """Some of the descriptions, by the numbers of the features."""
        if not isinstance(features, Iterable):
            raise BadInput(f"Give the numbers of features as a list, such as [12, 40]; {in_short(features)} was given.")
        return self._only(self[feature] for feature in features)

    def _only(self, items: Any) -> "Descriptions":
        return replace(self, items=tuple(items))

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per feature."""
        rows = [
            {
                **{name: getattr(item, name) for name in _NUMBERS},
                "label": item.label,
                **{name: nan if item.rule is None else getattr(item.rule, name).value for name in _MEASURES},
                "auroc_low": nan if item.rule is None else item.rule.auroc.low,
                "auroc_high": nan if item.rule is None else item.rule.auroc.high,
                "raised": ", ".join(output.name for output in item.raised),
                "lowered": ", ".join(output.name for output in item.lowered),
            }
            for item in self.items
        ]
        return load_pandas().DataFrame(rows)

    def save(self, path: str | Path) -> None:
        """Writes a page for .html; else a folder with page.html and features.jsonl, a line per feature."""
        from heedful.render.features.described import features_page

        path = check_place(path)
        if path.suffix.lower() == ".html":
            write_file(path, features_page(self))
            return
        write_atomically(path / "features.jsonl", "".join(f"{sealed(item.as_dict())}\n" for item in self.items))
        write_atomically(path / "page.html", features_page(self))

    @property
    def summary(self) -> str:
        """A line about all, and a line for each of the 20 whose rules have the largest AUROC."""
        best = sorted(self.items, key=lambda item: 0.0 if item.rule is None else -item.rule.auroc.value)[:_LISTED]
        return "\n".join(map(repr, (self, *best)))

    def __repr__(self) -> str:
        n_rules = sum(item.rule is not None for item in self.items)
        return (
            f"<descriptions of {len(self):,} of {self.width:,} features, {n_rules:,} with a token rule, from "
            f"{self.n_tokens:,} tokens of {self.n_texts:,} texts>"
        )


_LISTED = 20


def check_place(path: str | Path) -> Path:
    """The path of a page or folder; another ending is refused, before anything is computed for it."""
    path = path_of(path)
    if path.suffix and path.suffix.lower() != ".html":
        raise BadInput(f"Descriptions are saved to a folder or to .html, not to {path.name!r}; see to_frame().")
    if path.suffix:
        _check_writable(path)
    else:
        RunFolder(path).check_usable()
    return path


def _check_writable(path: Path) -> None:
    try:
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():
            path.touch()
            path.unlink()
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.") from None
