"""Beam search: the β most likely beginnings go on; of the finished texts the best mean log-probability wins."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from heedful.document import Document
from heedful.errors import BadInput
from heedful.generation.step import (
    BeamNode,
    Ended,
    Fate,
    Step,
    demanded_token,
    largest,
    next_log_probabilities,
    record_step,
)
from heedful.models.language import LanguageModel
from heedful.progress import Progress

_WIDEST = 100


@final
@dataclass(frozen=True)
class Beam:
    """The settings of beam search: its width β.

    A text ends with an end token, or at the limit. Its value is its log-probability divided by its number of tokens,
    the end token included. The search ends at the limit, or as soon as it has β finished texts and the best beginning
    has no larger value than the worst of them. These are the defaults of transformers: `length_penalty=1.0`,
    `early_stopping=False`.
    """

    name: ClassVar[str] = "beam"

    width: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.width <= _WIDEST:
            raise BadInput(
                f"width is the number of beams, from 2 to {_WIDEST}; {self.width:,} was given. "
                'One beam is strategy="greedy".'
            )


def search_beams(
    model: LanguageModel, document: Document, beam: Beam, limit: int, watch: Progress
) -> tuple[tuple[Step, ...], tuple[BeamNode, ...], Ended]:
    """The text of the largest value that beam search finishes, and the tree of all continuations it considered."""
    nodes: list[BeamNode] = []
    steps: dict[int, Step] = {}
    finished: list[int] = []
    running = [-1]
    prefix = model.read(document)
    for n_written in range(limit):
        log_p, demanded = next_log_probabilities(prefix, n_written), demanded_token(model, n_written, limit)
        so_far = np.array([nodes[node].total if node >= 0 else 0.0 for node in running])
        rows, ids, totals = _best(log_p, so_far, demanded, max(2, 1 + len(model.end_ids)) * beam.width)
        ends = np.isin(ids, sorted(model.end_ids)) | (n_written == limit - 1)
        first = len(nodes)
        for row, token, total, (fate, why) in zip(rows, ids.tolist(), totals, _fates(ends, beam.width), strict=True):
            gain, name = float(total - so_far[row]), model.classes[token]
            nodes.append(BeamNode(running[row], n_written + 1, token, name, gain, float(total), fate, why))
        steps |= _records(model, log_p, nodes, first, rows, demanded is not None)
        new = range(first, len(nodes))
        finished += [node for node in new if nodes[node].fate == "finished"]
        finished = sorted(finished, key=lambda node: -nodes[node].value)[: beam.width]
        kept = [node for node in new if nodes[node].fate == "kept"]
        watch(n_written + 1, limit)
        if not kept or (len(finished) == beam.width and nodes[kept[0]].value <= nodes[finished[-1]].value):
            break
        device, places = prefix.logits.device, [node - first for node in kept]
        prefix = model.select(prefix, torch.from_numpy(rows[places]).to(device))
        prefix, running = model.go_on(prefix, torch.from_numpy(ids[places]).to(device)), kept
    path = _path(nodes, finished[0])
    written = tuple(replace(node, written=number in path) for number, node in enumerate(nodes))
    last = steps[path[-1]]
    return tuple(steps[n] for n in path), written, "end of text" if last.ends(model.end_ids) else "length"


def _fates(ends: Bool[np.ndarray, "_"], width: int) -> list[tuple[Fate, str]]:
    """What becomes of the best continuations, in their order: of those that do not end, the first β go on."""
    fates: list[tuple[Fate, str]] = []
    n_kept = 0
    for rank, is_end in enumerate(ends.tolist()):
        if is_end:
            fates.append(("finished", "") if rank < width else ("pruned", f"ended, but not among the {width} best"))
        elif n_kept < width:
            fates.append(("kept", ""))
            n_kept += 1
        else:
            fates.append(("pruned", f"not among the {width} best"))
    return fates


def _best(
    log_p: Float[np.ndarray, "row vocabulary"], so_far: Float[np.ndarray, "row"], demanded: int | None, n: int
) -> tuple[Int[np.ndarray, "_"], Int[np.ndarray, "_"], Float[np.ndarray, "_"]]:
    """Rows, tokens and totals of the n best continuations; a token that is demanded costs nothing."""
    if demanded is None:
        totals = (log_p + so_far[:, None]).ravel()
        order = largest(totals, n)
        order = order[totals[order] > -np.inf]
        return order // log_p.shape[1], order % log_p.shape[1], totals[order]
    rows = np.argsort(-so_far, kind="stable")
    return rows, np.full(len(rows), demanded), so_far[rows]


def _records(
    model: LanguageModel,
    log_p: Float[np.ndarray, "row vocabulary"],
    nodes: list[BeamNode],
    first: int,
    rows: Int[np.ndarray, "_"],
    forced: bool,
) -> dict[int, Step]:
    """The step of every node that was not pruned; its kept set are the tokens of the same beam that were not."""
    alive = np.array([node.fate != "pruned" for node in nodes[first:]], dtype=bool)
    ids = np.array([node.id for node in nodes[first:]], dtype=np.int64)
    records = {}
    for place in np.flatnonzero(alive).tolist():
        siblings = np.zeros(log_p.shape[1], dtype=bool)
        siblings[ids[alive & (rows == rows[place])]] = True
        record = record_step(model.classes, log_p[rows[place]], int(ids[place]), siblings, None, forced)
        records[first + place] = record
    return records


def _path(nodes: list[BeamNode], last: int) -> list[int]:
    """The nodes from the prompt to a node."""
    path: list[int] = []
    while last >= 0:
        path.append(last)
        last = nodes[last].parent
    return path[::-1]
