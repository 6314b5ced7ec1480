"""Explanations of many texts by one method, with the texts' ids, labels and predicted classes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from math import nan
from pathlib import Path
from typing import Any, final, overload

from heedful.datasets.labels import class_numbers
from heedful.errors import BadInput, MissingPackage, unknown_name
from heedful.explanation import Explanation
from heedful.explanations.refusal import Refusal
from heedful.run_folder import write_file

COLUMNS = ("items", "ids", "labels", "predicted", "confidence")
"""The fields of `Explanations` that have a value for each text."""


@final
@dataclass(frozen=True, eq=False)
class Explanations(Sequence[Explanation | Refusal]):
    """One explanation per text, in the order of the texts; a text that could not be explained has a `Refusal`.

    `labels` and `predicted` are classes by number, None where they are unknown.
    """

    items: tuple[Explanation | Refusal, ...]
    ids: tuple[str, ...]
    """What the user calls the texts; "0", "1", … by default."""
    classes: tuple[str, ...]
    labels: tuple[int | None, ...]
    predicted: tuple[int | None, ...]
    n_texts: int
    """The texts that were given; more than there are items if the user stopped the run."""
    confidence: tuple[float | None, ...]
    """The log-probability of the predicted class, or its lead over the second class where probabilities are not known;
    None for a text without explanation."""

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Explanation | Refusal: ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: int | slice) -> "Explanation | Refusal | Explanations":
        return self._at(range(len(self))[index]) if isinstance(index, slice) else self.items[index]

    def _at(self, places: Sequence[int]) -> "Explanations":
        columns = {name: tuple(getattr(self, name)[place] for place in places) for name in COLUMNS}
        return replace(self, n_texts=len(places), **columns)

    @property
    def refusals(self) -> dict[str, str]:
        """The reason of every text that could not be explained, by the text's id."""
        return {name: item.reason for name, item in zip(self.ids, self.items, strict=True) if isinstance(item, Refusal)}

    @property
    def right(self) -> tuple[bool | None, ...]:
        """Whether the predicted class is the label, for each text; None where one of them is unknown."""
        pairs = zip(self.labels, self.predicted, strict=True)
        return tuple(None if label is None or own is None else label == own for label, own in pairs)

    def errors(self, labels: Iterable[Any] | None = None) -> "Explanations":
        """The texts that the model got wrong, the most confident mistakes first.

        `labels` are class numbers or names, one per text; by default the labels of the data.
        """
        labelled, given = self, None if labels is None else [*labels]
        if given is not None:
            if len(given) != len(self):
                raise BadInput(f"One label per text is needed: {len(self)} texts, {len(given)} labels.")
            labelled = replace(self, labels=class_numbers(given, self.classes))
        labelled.check_labels()
        wrong = [place for place, right in enumerate(labelled.right) if right is False]
        return labelled._at(sorted(wrong, key=lambda place: -(self.confidence[place] or 0.0)))

    def check_labels(self) -> None:
        """Refuses explanations without labels, of which right and wrong are not known."""
        if all(right is None for right in self.right):
            raise BadInput("The labels of the texts are not known; give errors(labels), or explain texts with labels.")

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per unit; refused texts have no rows.

        `place` is 0 for the first unit of a text; `low` and `high` are the 95 % interval of the score, `output` is the
        value of the target, and `predicted` and `label` are class names.
        """
        pandas, rows = load_pandas(), []
        for name, item, *numbers in zip(self.ids, self.items, self.predicted, self.labels, strict=True):
            about = [None if number is None else self.classes[number] for number in numbers]
            if isinstance(item, Refusal):
                continue
            for place, row in enumerate(item.as_rows()):
                score, error = row["score"], nan if row["error"] is None else row["error"]
                bounds = (score, score - error, score + error)  # type: ignore[operator]
                rows.append((name, row["unit"], place, *bounds, item.target.name, item.output, *about))
        columns = ["id", "unit", "place", "score", "low", "high", "target", "output", "predicted", "label"]
        return pandas.DataFrame(rows, columns=columns)

    def global_words(self, by: str | None = None, min_texts: int | None = None) -> Any:
        """A pandas DataFrame with one row per word and target, by mean |score|, the largest first.

        Two words are the same if `str.casefold` makes them equal. A text counts once, with the mean over the word's
        occurrences in it; `low` and `high` are the 95 % interval of the mean over texts, NaN below five texts. Scores
        are for the `target`, and texts of different targets are never mixed. `by="class"` also divides by predicted
        class, `by="error"` by right and wrong. Words of fewer than `min_texts` texts are left out: by default 5 if
        there are 50 texts or more.
        """
        from heedful.explanations.words import WordScores, one_kind, word_scores

        names = [field.name for field in fields(WordScores)]
        frame = load_pandas().DataFrame(word_scores(self, by, min_texts), columns=names)
        frame["signed"] = one_kind(self)
        if by is None:
            return frame.drop(columns="group")
        return frame.rename(columns={"group": "predicted" if by == "class" else "outcome"})

    def to_shap(self, target: str | None = None) -> Any:
        """A `shap.Explanation` of texts × words, for `shap.plots.beeswarm` and `shap.plots.bar`.

        A value is the sum over a word's occurrences, 0 in texts without it; `data` counts them. `target` chooses the
        texts if they are explained for several. For `shap.plots.text`, call `to_shap` of one explanation.
        """
        from heedful.exchange.to_shap import words_as_shap
        from heedful.explanations.words import one_kind, word_occurrences

        one_kind(self)
        items = [item for item in self.items if isinstance(item, Explanation)]
        names = list(dict.fromkeys(item.target.name for item in items))
        if target is None and len(names) != 1:
            raise BadInput(f"shap's plots are of one target; give target=, one of: {', '.join(names) or 'none'}.")
        if target is not None and target not in names:
            raise unknown_name("target", target, names)
        chosen = [item for item in items if target in (None, item.target.name)]
        return words_as_shap(chosen, [word_occurrences(item) for item in chosen])

    def save(self, path: str | Path) -> None:
        """Writes a folder of parquet files that `heedful.open` reads back, with page.html; or, for .html, the page."""
        from heedful.explanations.store import save_folder
        from heedful.render.texts_page import texts_page

        path = Path(path)
        if path.suffix in (".json", ".csv", ".parquet", ".xlsx"):
            raise BadInput(
                f"Many explanations are saved to a folder or to .html, not to {path.name!r}; see to_frame()."
            )
        if path.suffix != ".html":
            save_folder(self, path)
        write_file(path if path.suffix == ".html" else path / "page.html", texts_page(self))

    def _repr_html_(self) -> str:
        from heedful.render.texts_page import texts_fragment

        return texts_fragment(self)

    def __repr__(self) -> str:
        n_refused = len(self.refusals)
        refused = f", {n_refused:,} refused" if n_refused else ""
        missing = f" of {self.n_texts:,}" if len(self) < self.n_texts else ""
        return f"<explanations of {len(self):,}{missing} text{'s' * (self.n_texts != 1)}{refused}>"


def load_pandas() -> Any:
    """The package pandas; an error that names it if it is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise MissingPackage("A data frame needs pandas; run pip install pandas.") from error
    return pandas
