"""Evidence for models of several layers: a first-order diagnosis from attention and its gradient.

With A a map and ∇A = ∇o vᵀ the target's gradient there, Σ_s A_st ∇A_st is to the first order what is read from position
t in that layer. Summed over layers it takes the place of α W_ℓ v, which on the paper's model it equals up to rounding.
It does not see skip connections and the layers between, nor that a position of a higher layer no longer represents one
word: the causes found with it are tested by removing units, and the counts are reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Absence, Unit
from heedful.document.units import unit_scores
from heedful.errors import HeedfulError, Unsupported
from heedful.evaluation.disagreement.accounts import removal_kind
from heedful.evaluation.disagreement.evidence import Evidence, Passed, probability
from heedful.explanation import Explanation
from heedful.models.attention_hook import Attended
from heedful.models.budget import PASS_MEMORY
from heedful.models.question import Question
from heedful.models.recording import Recordable, Recording, read_rows
from heedful.models.target_gradient import target_values
from heedful.perturb.document_values import DocumentValues


def measured_evidence(
    question: Question, unit: Unit, explanations: Sequence[Explanation], absences: Iterable[Absence]
) -> Evidence:
    """The evidence of a question of one document: one more forward and backward pass, and the masks of `absences`."""
    model, document, target, logits = question.model, question.documents[0], question.targets[0], question.logits
    evidence = Evidence(
        exact=False,
        output=float(target.of(logits)[0]),
        losses=_losses(question, unit, explanations, absences),
        probability=probability(target, logits[0]),
    )
    if not isinstance(model, Recordable) or not {"layers", "gradients"} <= model.offers or not _fits(question, model):
        return evidence
    try:
        whole = (question.gradient.embeddings * question.gradient.gradients).sum(axis=-1)[0]
        parts, fixed = _through_layers(question)
    except HeedfulError:
        # A quantised model has no gradient, and some hide their attention; units can still be removed.
        return evidence
    passed = Passed(*(unit_scores(document, unit, part)[0] for part in parts))
    return replace(evidence, passed=passed, query=unit_scores(document, unit, whole - fixed)[0])


def _fits(question: Question, model: Recordable) -> bool:
    """Whether a pass with its gradient fits the memory limit of a diagnostic."""
    memory = question.budget.memory
    return model.bytes_a_document(len(question.documents[0].ids)) <= (PASS_MEMORY if memory is None else memory)


def _losses(
    question: Question, unit: Unit, explanations: Sequence[Explanation], absences: Iterable[Absence]
) -> Mapping[Absence, Float[np.ndarray, "unit"]]:
    """The loss without each unit: from leave-one-out explanations, and measured for every further absence."""
    losses = {str(e.settings["absence"]): e.scores for e in explanations if removal_kind(e.method) == "single"}
    for absence in absences:
        if absence not in losses:
            losses[absence] = DocumentValues(question, unit).one_out(absence)
    return losses


@final
class _Parts(NamedTuple):
    """For every token the numbers of `Passed`, in its order."""

    attention: Float[np.ndarray, "token"]
    gross: Float[np.ndarray, "token"]
    contribution: Float[np.ndarray, "token"]
    centred: Float[np.ndarray, "token"]
    scatter: Float[np.ndarray, "token"]


def _through_layers(question: Question) -> tuple[_Parts, Float[np.ndarray, "token"]]:
    """What is read from every token over all layers, and its gradient × input with all queries held fixed."""
    model, documents = question.recordable, question.documents
    calls: list[Attended] = []
    outs: list[Tensor] = []

    def listen(call: Attended) -> Tensor:
        out = replace(call, q=call.q.detach()).output()
        calls.append(call.detached())
        outs.append(out)
        return out

    with torch.enable_grad(), question.still(), model.listening(listen):
        e = model.embed(documents).detach().requires_grad_()
        logits = model.forward(e, documents)
        if not calls:
            raise Unsupported("The attention of this model cannot be recorded.")
        fixed, *slopes = torch.autograd.grad(
            target_values(question.targets, logits).sum(), [e, *outs], allow_unused=True
        )
    readout, n_sources = model.readout(documents), model.n_sources(documents)
    own, source = ([readout.new_zeros(len(documents), n) for _ in range(4)] for n in (readout.shape[1], n_sources))
    for call, slope in zip(calls, slopes, strict=True):
        if slope is not None:
            keys = own if call.kind in ("self", "back") else source
            for sums, part in zip(keys, _passed_on(call, slope), strict=True):
                sums += part.to(sums)
    rows = [model.placed(documents, *both) for both in zip(own, source if n_sources else [None] * 4, strict=True)]
    attention = read_rows(model, documents, Recording(tuple(calls), logits.detach())).mean(dim=(1, 2))
    by_token = (e.detach() * fixed).double().sum(dim=-1)[0].cpu().numpy()
    return _Parts(*(row[0].double().cpu().numpy() for row in (attention, *rows))), by_token


@torch.no_grad()
def _passed_on(call: Attended, gradient: Float[Tensor, "batch head query d_out"]) -> list[Float[Tensor, "batch key"]]:
    """A |∇A|, A ∇A, A (∇A − mean of the others) and A σ, summed over heads and queries, a few queries at a time."""
    total = [call.k.new_zeros(call.k.shape[0], call.k.shape[2], dtype=torch.float64) for _ in range(4)]
    # Positions that are not read any further have no gradient, and their rows are not needed.
    for queries in call.portions(gradient.abs().sum(dim=(1, 3))):
        rows = call.rows(queries)
        slopes = gradient[:, :, queries].to(rows) @ call.v.to(rows).transpose(-1, -2)
        mean = (rows * slopes).sum(dim=-1, keepdim=True)
        spread = (rows * (slopes - mean) ** 2).sum(dim=-1, keepdim=True).sqrt()
        # ∇A − mean of the others = (∇A − mean) / (1 − A), and nothing where there are no others.
        others = (slopes - mean) / (1 - rows).where(rows < 1, inf)
        for sums, part in zip(total, (slopes.abs(), slopes, others, spread), strict=True):
            sums += (rows * part).sum(dim=(1, 2))
    return total
