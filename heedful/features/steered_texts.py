"""What a model writes while its activations are moved, and what is measured of every text."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.explanation import Setting
from heedful.features.activations import is_read
from heedful.features.controls import Move
from heedful.features.labelled import Label, repetition
from heedful.features.steering import MEASURES, Run
from heedful.generation.generate import added_text
from heedful.generation.many_prompts import continue_all
from heedful.generation.strategies import Strategy
from heedful.models.attention_hook import still
from heedful.models.language import LanguageModel
from heedful.models.language.activations import Site, replaced_activations
from heedful.progress import Progress
from heedful.run_folder import RunFolder

_AT_ONCE = 32
"""Prompts that write side by side, and are a step of a resumable run."""


@final
@dataclass(frozen=True, eq=False)
class Writing:
    """The prompts, how the model continues them, and the label that is looked for."""

    model: LanguageModel
    site: Site
    label: Label
    documents: tuple[Document, ...]
    rule: Strategy
    max_new: int
    seed: int

    @property
    def settings(self) -> dict[str, Setting]:
        """How texts are written."""
        return {"strategy": self.rule.name, **asdict(self.rule), "max_new": self.max_new, "seed": self.seed}


@final
class Runs:
    """Runs of all prompts, part by part; with a folder every part is kept there."""

    def __init__(self, writing: Writing, folder: RunFolder | None, watch: Progress, n_runs: int) -> None:
        self.writing, self.folder, self.watch = writing, folder, watch
        self.done, self.total = 0, n_runs * len(writing.documents)
        self.fixed: list[list[int]] = []
        """The tokens that the unchanged model wrote, over which the log-probability of the label is measured."""
        self.size = 0.0
        """The mean length of the activations at the site over these texts."""

    def run(self, direction: str, factor: float = 0.0, move: Move | None = None) -> Run:
        """What is written and measured after every prompt; the first run is that of the unchanged model."""
        rows: list[dict[str, Any]] = []
        for start in range(0, len(self.writing.documents), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            work = partial(_part, self.writing, self.writing.documents[some], self.fixed[some], move)
            key = f"{direction.replace(' ', '-')}-{factor!r}-{start}"
            rows += work() if self.folder is None else self.folder.step(key, work)
            self.done += len(self.writing.documents[some])
            self.watch(self.done, self.total)
        if move is None:
            self.fixed, self.size = [row["ids"] for row in rows], float(np.mean([row["size"] for row in rows]))
        values = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in MEASURES}
        norm = float(np.mean([row["norm"] for row in rows]))
        return Run(direction, factor, 0.0 if move is None else move.c, norm, tuple(row["text"] for row in rows), values)


def _part(
    writing: Writing, documents: Sequence[Document], fixed: Sequence[Sequence[int]], move: Move | None
) -> list[dict[str, Any]]:
    """Of every prompt the text and its measures, ready for JSON."""
    model = writing.model
    with nullcontext() if move is None else move.on(model):
        written = continue_all(model, documents, writing.rule, writing.max_new, writing.seed)
    rows = []
    for document, ids, reference in zip(documents, written, fixed or written, strict=True):
        text = added_text(model, document, ids)
        share = writing.label.share(text)
        log_p = _log_probabilities(model, model.continued(document, ids[:-1]), len(ids))
        row = {
            "words": 100 * share,
            "texts": float(share > 0),
            "surprise": -float(log_p[torch.arange(len(ids)), torch.tensor(ids)].mean()),
            "repetition": repetition(text),
            **_effect(writing, document, reference, move),
        }
        rows.append({"ids": list(ids), "text": text, **row})
    return rows


def _effect(writing: Writing, document: Document, ids: Sequence[int], move: Move | None) -> dict[str, float]:
    """Over a fixed text the log-probability of the label, and the mean lengths of the move and of the activations.

    The activations are recorded at the site before and behind the move.
    """
    change = nullcontext() if move is None else move.on(writing.model)
    whole, recorded = writing.model.continued(document, ids[:-1]), ([], [])

    def keep(kept: list[Tensor], _: Site, x: Tensor) -> Tensor:
        kept.append(x.detach().clone())
        return x

    before, behind = (replaced_activations(writing.model, [writing.site], partial(keep, kept)) for kept in recorded)
    with before, change, behind:
        log_p = _log_probabilities(writing.model, whole, len(ids))
    places = np.flatnonzero(is_read(writing.model, whole, writing.site))
    x, moved = (torch.cat(parts, dim=1)[0].double().cpu()[places] for parts in recorded)
    return {
        "log-probability": float(log_p[:, list(writing.label.tokens)].logsumexp(dim=1).mean()),
        "norm": float((moved - x).norm(dim=1).mean()),
        "size": float(x.norm(dim=1).mean()),
    }


@torch.no_grad()
def _log_probabilities(model: LanguageModel, document: Document, n_last: int) -> Float[Tensor, "query vocabulary"]:
    """The log-probabilities of the token after each of the last positions, in double precision."""
    with still(model.network):
        logits = model.token_logits(model.embed([document]), [document], None, n_last)[0]
    return logits.double().log_softmax(dim=-1).cpu()
