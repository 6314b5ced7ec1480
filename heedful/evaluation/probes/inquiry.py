"""What all probes of one run share: the model, its texts, the attention in each, and the folder that resumes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Unit
from heedful.evaluation.probes.last_attention import LastAttention, last_attention
from heedful.models.question import MaskValues, Question, Wanted
from heedful.models.recording import Recordable
from heedful.run_folder import Result, RunFolder

Columns = Mapping[str, Float[np.ndarray, "text"]]
"""One value per text under each name; NaN where a text has none."""
_AT_ONCE = 20
"""The number of texts whose values are stored together."""


@final
@dataclass(frozen=True)
class TrainAndTest:
    """Texts with labels to train on, and others to test the trained models."""

    documents: tuple[Document, ...]
    labels: tuple[int, ...]
    test_documents: tuple[Document, ...]
    test_labels: tuple[int, ...]


@final
@dataclass(eq=False)
class Inquiry:
    """A model and its texts. What several probes need is computed once; finished parts are kept in the folder."""

    model: Recordable
    documents: tuple[Document, ...]
    labels: tuple[int | None, ...]
    unit: Unit = "word"
    seed: int = 0
    folder: RunFolder | None = None
    training: Callable[[], TrainAndTest] | None = None
    """The texts to train on; None where there are none."""
    watch: Callable[[float], None] = lambda _: None
    """Called with the share of the present probe that is done."""
    _attention: dict[int, LastAttention] = field(default_factory=dict)

    def attention(self, index: int) -> LastAttention:
        """The last layer's attention in a text, by index."""
        if index not in self._attention:
            self._attention[index] = last_attention(self.model, self.documents[index])
        return self._attention[index]

    def question(self, index: int, scale: Literal["probability", "logit"] = "probability") -> Question:
        """The question of why a text gets its predicted class; its methods share the values at masks."""
        return Question(self.model, (self.documents[index],), Wanted(scale=scale), mask_values=MaskValues())

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, from the folder if it was finished before."""
        return work() if self.folder is None else self.folder.step(key, work)

    def over_texts(self, name: str, measure: Callable[[int], Mapping[str, float]], n: int | None = None) -> Columns:
        """The values of each of the first n texts, as columns; resumable, and counted as progress."""
        n = len(self.documents) if n is None else min(n, len(self.documents))
        rows: list[dict[str, Any]] = []
        for start in range(0, n, _AT_ONCE):
            part = range(start, min(start + _AT_ONCE, n))
            rows += self.step(f"{name}-{start}", lambda part=part: self._measured(part, measure, n))
            self.watch(part.stop / n)
        names = dict.fromkeys(column for row in rows for column in row)
        return {
            column: np.array([np.nan if row.get(column) is None else row[column] for row in rows], dtype=np.float64)
            for column in names
        }

    def _measured(self, part: Sequence[int], measure: Callable[[int], Mapping[str, float]], n: int) -> list[Any]:
        rows = []
        for index in part:
            values = measure(index)
            # JSON has no NaN.
            rows.append({name: float(value) if isfinite(value) else None for name, value in values.items()})
            self.watch((index + 1) / n)
        return rows

    def rng(self, index: int) -> np.random.Generator:
        """Random numbers that depend on the seed and the text alone."""
        return np.random.default_rng((self.seed, *self.documents[index].text.encode("utf-8", "backslashreplace")))
