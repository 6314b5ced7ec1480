"""f on many masks at once is f on each of them alone, for every family and absence."""

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

import heedful
from heedful.document import SPECIAL
from heedful.errors import Unsupported
from heedful.models.attention_hook import still
from heedful.models.question import ask
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS, tiny_model
from tests.families import BOTH, DECODERS, ENCODERS, FAMILIES, VISION, build, texts_for

TARGET = heedful.Target(1, "")
LONG = "the film was good and very bright but not a dull plot and the actor was very bad"


def masks_of(document, n=24):
    keep = np.random.default_rng(0).random((n, len(document.ids))) < 0.6
    keep[0], keep[1] = True, False
    # Some that begin alike, for models that read a common beginning once.
    keep[2:10, : len(document.ids) // 2] = True
    return keep | (document.words == SPECIAL)


def alone(model, document, keep, absence):
    """One mask, the plain way."""
    kind, _, word = absence.partition(":")
    if kind == "delete" and not keep.any():
        return model.logits(
            [
                replace(
                    document,
                    ids=np.array([model.replacement_id]),
                    words=np.array([0]),
                    known=np.array([True]),
                    segments=None,
                )
            ]
        )[0]
    if kind == "delete":
        kept = np.flatnonzero(keep)
        thin = replace(
            document,
            ids=document.ids[kept],
            words=document.words[kept],
            known=document.known[kept],
            pieces=tuple(document.pieces[t] for t in kept),
            spans=tuple(document.spans[t] for t in kept),
            segments=None if document.segments is None else document.segments[kept],
        )
        return model.logits([thin])[0]
    if kind == "replace" and document.picture is None:
        number = model.word_id(word) if word else model.replacement_id
        return model.logits([replace(document, ids=np.where(keep, document.ids, number))])[0]
    with torch.no_grad(), still(model.network):
        e = model.embed([document])
        there = torch.ones(e.shape[1], dtype=torch.bool)
        there[: len(keep)] = torch.from_numpy(keep)
        if kind == "mask":
            # A picture is read from its special tokens, so what its hidden patches hold does not matter.
            ids = document.ids if document.picture else np.where(keep, document.ids, model.replacement_id)
            e = model.embed([replace(document, ids=ids)])
            return model.forward(e, [document], ~there[None])[0].double().numpy()
        gone = model.filled([document], model.gone_vector(document, kind))
        return model.forward(torch.where(there[None, :, None], e, gone), [document])[0].double().numpy()


ABSENCES = ("replace", "replace:good", "delete", "mask", "zero", "mean")


CASES = [
    (family, absence)
    for family in (*ENCODERS, *DECODERS, *BOTH, "transformer", "encoder", "torch")
    for absence in ABSENCES
    # A torch module does not say how to hide a token.
    if (family, absence) != ("torch", "mask")
]


@pytest.mark.parametrize(("family", "absence"), CASES)
def test_many_masks_at_once_are_each_alone(family, absence):
    model = build(family)
    document = model.encode(LONG)
    keep, target = masks_of(document), heedful.Target(1 % len(model.classes), "")
    values = model.masked(document, target, keep, absence)
    truth = np.array([alone(model, document, row, absence)[target.index] for row in keep])
    assert np.abs(values - truth).max() <= 1e-10 * max(1.0, np.abs(truth).max())
    few = model.masked(document, target, keep, absence, at_once=5)
    assert np.abs(values - few).max() <= 1e-10 * max(1.0, np.abs(truth).max())


@pytest.mark.parametrize("family", VISION)
@pytest.mark.parametrize("absence", ["replace", "zero", "mean", "blur", "delete", "mask"])
def test_patches_go_in_every_way(family, absence):
    model = build(family)
    document = model.encode(texts_for(family)[0])
    keep = masks_of(document, 8)
    values = model.masked(document, TARGET, keep, absence)
    e = model.embed([document])
    for row, value in zip(keep, values, strict=True):
        if absence in ("delete", "mask"):
            truth = dropped(model, e, document, row)
        else:
            gone = model.gone_vector(document, absence)
            pixels = torch.where(torch.from_numpy(row)[None, :, None], e, gone)
            with torch.no_grad():
                truth = model.forward(pixels, [document])[0]
        assert abs(float(truth[1]) - value) <= 1e-10


def dropped(model, e, document, keep):
    """The logits of the network given the kept patches' tokens alone, past its embeddings."""
    network, patches = model.network, []
    handle = network.base_model.embeddings.register_forward_hook(
        lambda _module, _inputs, out: patches.append(out) or out[:, torch.from_numpy(keep)]
    )
    try:
        with torch.no_grad(), still(network):
            return model.forward(e, [document])[0]
    finally:
        handle.remove()


def test_a_blurred_patch_keeps_its_mean_colour_roughly_and_loses_detail():
    model = build("vit")
    document = model.encode(texts_for("vit")[0])
    e, blurred = model.embed([document])[0], model.gone_vector(document, "blur")
    assert blurred[1:].std() < 0.8 * e[1:].std()
    assert torch.allclose(blurred[1:].mean(), e[1:].mean(), atol=0.1)
    grey, mean = model.gone_vector(document, "zero"), model.gone_vector(document, "mean")
    assert not grey.any()
    assert torch.allclose(mean.reshape(3, -1)[:, 0], e[1:].reshape(len(e) - 1, 3, -1).mean(dim=(0, 2)))


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "transformer", "encoder", "torch"])
def test_a_word_cannot_be_blurred(family):
    with pytest.raises(Unsupported, match="images"):
        heedful.explain(build(family), "good film", "leave-one-out", absence="blur")


@pytest.mark.parametrize("method", ["occlusion", "leave-one-out", "hierarchical-shapley", "sobol", "lime"])
def test_regions_of_a_picture_are_explained(method):
    explanation = heedful.explain(build("vit"), texts_for("vit")[0], method, unit="segment", target=1)
    assert len(explanation.scores) == 4


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_lime_and_shapley_are_brute_force_over_all_sets(family):
    model = build(family)
    picture = family in VISION
    text = texts_for(family)[0] if picture else "a very bad film , but"
    question = ask(model, [text], 1 % len(model.classes))
    document = question.documents[0]
    unit = "segment" if picture else "word"
    unit_of, d = document.unit_of(unit), document.n_units(unit)
    if picture:
        assert d == 4
    sets = [frozenset(s) for size in range(d + 1) for s in combinations(range(d), size)]
    kept = np.array([[unit in s for unit in range(d)] for s in sets])
    f = {}
    for s, row in zip(sets, kept, strict=True):
        tokens = row[unit_of] | (unit_of == SPECIAL)
        f[s] = float(alone(model, document, tokens, "replace")[1 % len(model.classes)])
    everything = frozenset(range(d))
    shapley = [sum((f[s | {j}] - f[s]) / (d * comb(d - 1, len(s))) for s in sets if j not in s) for j in range(d)]
    explanation = heedful.explain(model, text, "shapley-sampled", target=1 % len(model.classes), unit=unit)
    assert np.abs(explanation.scores - shapley).max() <= 1e-9
    assert abs(explanation.scores.sum() - (f[everything] - f[frozenset()])) <= 1e-9
    n = 5000
    size = d - kept.sum(axis=1)
    mass = np.array([1.0 if s == 0 else (n - 1) / d / comb(d, int(s)) for s in size])
    mass *= np.exp(-((100 * (1 - np.sqrt(kept.mean(axis=1)))) ** 2) / (2 * 25.0**2))
    y = np.array([f[s] for s in sets])
    x = kept - mass @ kept / mass.sum()
    lime = np.linalg.solve(x.T @ (x * mass[:, None]) + np.eye(d), x.T @ (mass * (y - mass @ y / mass.sum())))
    explanation = heedful.explain(model, text, "lime", target=1 % len(model.classes), n_samples=n, unit=unit)
    assert np.abs(explanation.scores - lime).max() <= 1e-8


def test_decoders_read_a_common_beginning_once():
    model = build("llama")
    n_read = []
    table = model.network.get_input_embeddings()
    table.register_forward_hook(lambda _module, inputs, _out: n_read.append(inputs[0].numel()))
    document = model.encode(f"{LONG} {LONG} {LONG}")
    keep = ~np.eye(len(document.ids), dtype=bool)
    model.masked(document, TARGET, keep, "replace", at_once=6)
    # Looking vectors up costs one reading of every text; the network itself reads little more than half of them.
    assert sum(n_read) - keep.size < 0.7 * keep.size


@pytest.mark.parametrize("absence", ABSENCES)
@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS, *BOTH, "transformer", "causal", "torch", "single-layer"])
def test_f_depends_on_nothing_that_was_removed(family, absence):
    """Two texts that differ only in the words that are removed have the same value; the last word is among them."""
    own = {"causal": causal_transformer, "single-layer": lambda: tiny_model(n_classes=2)}
    model = own.get(family, lambda: build(family))()
    target = heedful.Target(1 % len(model.classes), "")
    text = texts_for(family)[0] if family in BOTH else "the film was good film"
    document = model.encode(text)
    real = np.flatnonzero(document.words != SPECIAL)
    gone = [real[-1:], real[::2], real[1:-1], real]
    keep = np.ones((len(gone), len(document.ids)), dtype=bool)
    for row, places in zip(keep, gone, strict=True):
        row[places] = False
    try:
        whole = model.masked(document, target, keep, absence)
    except Unsupported:
        assert (family, absence) == ("torch", "mask")
        return
    changed = 0
    for row, value in zip(keep, whole, strict=True):
        others = document.ids.copy()
        others[~row] = 10 + (others[~row] + 3) % 9
        swapped = replace(document, ids=others)
        assert model.masked(swapped, target, row[None], absence)[0] == pytest.approx(value, abs=1e-12)
        changed += abs(model.masked(swapped, target, np.ones_like(row)[None], absence)[0] - whole[0]) > 1e-9
    assert changed == len(keep)
    assert np.isfinite(whole).all()


def causal_transformer():
    config = TransformerConfig(
        2, True, True, "gelu", causal=True, n_heads=2, T_max=12, d_e=8, d_att=4, d_out=4, n_classes=2
    )
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    return Transformer(initial_network(config, len(vocabulary), 0).double(), vocabulary, ["bad", "good"])


def test_f_of_a_function_depends_on_no_word_that_was_removed():
    model = heedful.wrap(lambda texts: [[float(sum(map(ord, text)))] for text in texts])
    keep = np.array([[True, False, True, False], [False] * 4])
    for absence in ("replace", "replace:film", "delete"):
        one, other = (
            model.masked(model.encode(t), heedful.Target(0, ""), keep, absence) for t in ("a b c d", "a x c y")
        )
        assert one[0] == other[0]


@pytest.mark.parametrize("absence", ["replace", "delete"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_masked_copies_keep_the_words_of_their_tokens(family, absence, monkeypatch):
    model = build(family)
    document = model.encode(texts_for(family)[0])
    keep, copies, embed = masks_of(document), [], model.embed

    def note(documents):
        copies.extend(documents)
        return embed(documents)

    with monkeypatch.context() as patch:
        patch.setattr(model, "embed", note)
        model.masked(document, TARGET, keep, absence)
    expected = [document.words if absence == "replace" else document.words[row] for row in keep]
    if absence == "delete" and family == "gpt2":
        # The token in the place of an empty text is no word of it.
        expected[1] = np.array([SPECIAL])
    assert sorted(copy.words.tolist() for copy in copies) == sorted(words.tolist() for words in expected)
