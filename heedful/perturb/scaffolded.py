"""A classifier that behaves well on masked texts only, so that perturbation methods do not show what it uses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from heedful.document import check_absence
from heedful.errors import BadInput, Unsupported
from heedful.family import check_seed
from heedful.models.black_box import BlackBox
from heedful.perturb.detector import Detector, masked_words, words_read
from heedful.perturb.masks import lime_masks

_COPIES, _FEWEST = 4, 20


def scaffolded(
    biased: Callable[[list[str]], Any],
    innocuous: Callable[[list[str]], Any],
    texts: Sequence[str],
    absence: str = "replace",
    replacement: str = "[UNK]",
    classes: Sequence[str] | None = None,
    seed: int = 0,
) -> BlackBox:
    """A function that is `biased` on texts like these, and `innocuous` on masked copies of them.

    Slack, Hilgard, Jia, Singh & Lakkaraju, 2020 (arXiv:1911.02508): e(x) = f(x) where a classifier takes x for data,
    ψ(x) elsewhere. That classifier is a `Detector`, fitted to the texts and to copies masked as LIME masks them, by
    `absence`: "replace", "replace:WORD" or "delete". `heedful.off_data` is a check that finds it.

    Differs from the source: a logistic regression on how usual words are, in place of a random forest on the features.
    """
    check_absence(absence)
    check_seed(seed)
    if absence.partition(":")[0] not in ("replace", "delete"):
        raise Unsupported(f"A function of texts has no absence {absence!r}; give replace, replace:WORD or delete.")
    if isinstance(texts, str) or len(texts) < _FEWEST:
        raise BadInput(f"scaffolded needs a list of at least {_FEWEST} texts to know what data look like.")
    rng = np.random.default_rng(seed)
    reader = BlackBox(biased, classes, replacement)
    documents = [reader.encode(text) for text in texts]
    masks = [lime_masks(len(document.ids), 1 + _COPIES, rng)[1:] for document in documents]
    half = len(texts) // 2
    plain = [words_read(document) for document in documents]
    copies = [
        [masked_words(reader, document, row, absence) for row in rows]
        for document, rows in zip(documents[half:], masks[half:], strict=True)
    ]
    # As many texts as copies, so that the intercept favours neither.
    fitted = [words for words in plain[half:] for _ in range(_COPIES)]
    detector = Detector.fit(plain[:half], fitted, [words for row in copies for words in row], "#1")
    function = Scaffold(biased, innocuous, detector, reader)
    return BlackBox(function, reader.classes, replacement, reader.returns)


@final
@dataclass(frozen=True, eq=False)
class Scaffold:
    """The function of a scaffolded model; `is_masked` says which of its two parts answers."""

    biased: Callable[[list[str]], Any]
    innocuous: Callable[[list[str]], Any]
    detector: Detector
    reader: BlackBox

    def is_masked(self, texts: Sequence[str]) -> np.ndarray:
        """Which texts the detector takes for masked."""
        gone, words = self.reader.replacement, []
        for text in texts:
            parts = text.split(gone) if gone else [text]
            split = [words_read(self.reader.encode(part)) for part in parts]
            # Between two parts there was a removed word.
            words.append([word for part in split for word in (*part, self.detector.gone)][:-1])
        return self.detector.log_odds(words) > 0

    def __call__(self, texts: list[str]) -> np.ndarray:
        masked = self.is_masked(texts)[:, None]
        biased, innocuous = (np.asarray(part(list(texts)), dtype=np.float64) for part in (self.biased, self.innocuous))
        if biased.shape != innocuous.shape:
            raise BadInput(f"The two functions return scores of shapes {biased.shape} and {innocuous.shape}.")
        return np.where(masked, innocuous.reshape(len(texts), -1), biased.reshape(len(texts), -1))
