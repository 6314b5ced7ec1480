"""Why methods differ on a model that pools by attention: exact, from scores and values alone.

Of unit j in one head let α be its attention, w̄ = Σ_t α_t W_ℓ v_t / α its mean value, f₋ the output of the head when
the unit takes no attention, and α', w̄' those of its replacement. As f = α w̄ + (1−α) f₋,

    f − f₋          = α w̄ − α f₋                          leaving it out without replacement
    f − f(replaced) = α (w̄ − f₋) − α' (w̄' − f₋)            with a replacement
    e · ∇f          = α w̄ − α W_ℓ b_v + Σ_t α_t W_ℓ(v_t − ṽ) s_t     gradient × input, Theorem 4.1, s = e·W_kᵀq/√d_att
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from einops import einsum
from jaxtyping import Bool, Float, Int

from heedful.document import SPECIAL, Absence, Document, Unit
from heedful.document.units import sum_to
from heedful.evaluation.disagreement.evidence import Evidence, Passed, probability, tangent
from heedful.models.pooling import Pooling, PoolingModel
from heedful.models.question import Question
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import CLS
from heedful.target import Target


def pooled_evidence(question: Question, unit: Unit, absences: Iterable[Absence]) -> Evidence:
    """The evidence of a question of one document; no forward pass, no sampling."""
    model, document = question.model, question.documents[0]
    assert isinstance(model, PoolingModel)
    target, logits = question.targets[0], question.logits[0]
    row = tangent(target, logits)
    pooling = question.pooling("mask", row[None])
    holder = np.full(pooling.s.shape[2], SPECIAL)
    holder[: len(document.ids)] = document.unit_of(unit)
    n = document.n_units(unit)
    s, w = _heads(pooling.s), _heads(pooling.w)
    alpha = _softmax(s)
    f = (alpha * w).sum(axis=1, keepdims=True)
    spread = np.sqrt((alpha * (w - f) ** 2).sum(axis=1, keepdims=True))

    def by_unit(values: Float[np.ndarray, "head token"]) -> Float[np.ndarray, "unit"]:
        return sum_to(holder, n, values.mean(axis=0))

    deleting = ("delete",) if isinstance(model, SingleLayer) else ()
    wanted = dict.fromkeys(("mask", "replace", *absences, *deleting))
    keep = ~np.eye(n, dtype=bool)[:, document.unit_of(unit)] | (document.unit_of(unit) == SPECIAL)
    straight = {
        absence: _moved_losses(model, document, row, keep)
        if absence == "delete"
        else _losses(question.pooling(absence, row[None]), holder, n)
        for absence in wanted
    }
    attention, gross, contribution, scatter = (by_unit(alpha * x) for x in (np.ones_like(w), np.abs(w), w, spread))
    passed = Passed(attention, gross, contribution, straight["mask"], scatter)
    losses, output = dict(straight), float(target.of(logits[None])[0])
    if not target.is_linear:
        losses = {absence: output - model.masked(document, target, keep, absence) for absence in wanted}
    evidence = Evidence(True, output, passed, losses, straight, probability=probability(target, logits))
    if not isinstance(model, SingleLayer):
        return evidence
    constant = _bias(model, row)
    at_readout = _at_query(model, document, alpha * (w - f), alpha * (w - constant), s)
    bias, path = by_unit(-alpha * constant), by_unit(alpha * (w - f) * s)
    return replace(evidence, bias=bias, path=path, at_readout=at_readout)


def _losses(pooling: Pooling, holder: Int[np.ndarray, "token"], n: int) -> Float[np.ndarray, "unit"]:
    """f − f(without unit j) for every j, the mean over heads; nothing large is subtracted from anything large.

    Where nothing is left to attend to, the output is defined as zero, as in `theory/game.py`.
    """
    s, w, s_gone, w_gone = (_heads(x) for x in (pooling.s, pooling.w, pooling.s_gone, pooling.w_gone))
    # A constant taken from all scores of a head cancels.
    largest = np.maximum(s.max(axis=1), s_gone.max(axis=1))[:, None]
    g, g_gone = np.exp(s - largest), np.exp(s_gone - largest)
    a, A, b, B = (np.stack([sum_to(holder, n, head) for head in x]) for x in (g, g * w, g_gone, g_gone * w_gone))
    fixed = holder == SPECIAL
    R, M = (_others(x) + y[:, fixed].sum(axis=1, keepdims=True) for x, y in ((a, g), (A, g * w)))
    without = np.divide(M, R, out=np.zeros_like(M), where=R > 0)
    of_unit = (A - a * without) / g.sum(axis=1, keepdims=True)
    of_replacement = np.divide(B - b * without, R + b, out=np.zeros_like(B), where=R + b > 0)
    return (of_unit - of_replacement).mean(axis=0)


def _others(x: Float[np.ndarray, "head unit"]) -> Float[np.ndarray, "head unit"]:
    """For each unit the sum over all others, without subtraction: one unit may hold nearly all of the total."""
    nothing = np.zeros((len(x), 1))
    before = np.concatenate([nothing, x[:, :-1].cumsum(axis=1)], axis=1)
    after = np.concatenate([x[:, :0:-1].cumsum(axis=1)[:, ::-1], nothing], axis=1)
    return before + after


def _moved_losses(
    model: PoolingModel, document: Document, row: Float[np.ndarray, "class"], keep: Bool[np.ndarray, "mask token"]
) -> Float[np.ndarray, "unit"]:
    """The same with the unit deleted: later words move up, and one more padding token is added at the end."""
    whole = np.ones_like(keep[:1])
    both = np.concatenate([whole, keep])
    answers = sum(
        weight * model.masked(document, Target(index, model.classes[index]), both, "delete")
        for index, weight in enumerate(row.tolist())
        if weight
    )
    assert isinstance(answers, np.ndarray)
    return answers[0] - answers[1:]


@torch.no_grad()
def _bias(model: SingleLayer, row: Float[np.ndarray, "class"]) -> Float[np.ndarray, "head 1"]:
    """W_ℓ b_v of every head: the part of a value that does not depend on the embedding."""
    net = model.network
    c = torch.from_numpy(row).to(net.W_l.device)
    constant = einsum(c, net.W_l.double(), net.b_v.double(), "classes, head classes d_out, head d_out -> head")
    return constant.cpu().numpy()[:, None]


@torch.no_grad()
def _at_query(
    model: SingleLayer,
    document: Document,
    centred: Float[np.ndarray, "head token"],
    valued: Float[np.ndarray, "head token"],
    s: Float[np.ndarray, "head token"],
) -> tuple[float, float]:
    """Gradient × input of [CLS]: through its own query (docs/theorem-4-1.md), and as given by Theorem 4.1."""
    net = model.network
    e = net.embed(model.padded([document.ids]))
    key, _ = net.rows(net.query(e)[0] - net.b_q)
    # e_cls · W_qᵀ k_t / √d_att, the score without the query's bias.
    own = (key.double() @ e[0].double().T).cpu().numpy()
    return float((centred * own).sum(axis=1).mean()), float((valued + centred * s)[:, CLS].mean())


def _softmax(s: Float[np.ndarray, "head token"]) -> Float[np.ndarray, "head token"]:
    g = np.exp(s - s.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


def _heads(x: torch.Tensor) -> Float[np.ndarray, "head token"]:
    return x[0].cpu().numpy()
