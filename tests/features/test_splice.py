from dataclasses import replace
from itertools import product
from math import isnan, nan

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import heedful
from heedful.errors import BadInput
from heedful.features.activations import find_site, text_rows
from heedful.features.card import Card
from heedful.features.quality import measure_rows
from heedful.features.splice import _splice
from heedful.statistics.intervals import jackknife_interval, mean_intervals, wilson
from tests.families import TEXTS, build, network_of
from tests.features.dictionaries import random_dictionary

LINES = [
    *TEXTS,
    "",
    "a dull plot ; but the actor was good !",
    "not bad",
    "the story was very very very bad .",
    "a good story !",
    "unbelievable actors",
    "the plot was not good , not bad",
]
LAYERS = {
    "gpt2": lambda network: network.transformer.h,
    "llama": lambda network: network.model.layers,
    "bert": lambda network: network.bert.encoder.layer,
    "single-logit": lambda network: network.bert.encoder.layer,
}
NAMES = ("loss", "spliced", "zero", "mean", "kl", "kl_zero", "kl_mean", "same", "n")


def dictionary_of(model, layer=1, part="residual", width=40, **settings):
    site = find_site(model, part, layer)
    rows = text_rows(model, [model.encode(line) for line in LINES], site).x
    card = Card("topk", model=model.fingerprint, part=part, layer=layer)
    own = random_dictionary(width, rows.shape[1], card=card, **settings)
    # Near the rows, so that the model goes on with something like its own activations.
    return replace(own, W_enc=2 * own.W_enc / rows.std(), b_dec=rows.mean(dim=0)).bound(model)


def computed_by_hand(family, dictionary, labels=None):
    """Every sum of every text, by running the network of transformers alone with hooks of our own."""
    network, (_, tokenizer) = build(family).network, network_of(family)
    layer, causal = LAYERS[family](network)[dictionary.card.layer], family in ("gpt2", "llama")
    read = [tokenizer(line, return_special_tokens_mask=True) for line in LINES]
    read = [one for one in read if not all(one["special_tokens_mask"])]

    def run(one, change):
        real = torch.tensor(one["special_tokens_mask"]) == 0
        taken = []

        def hook(_, arguments):
            x = arguments[0].clone()
            taken.append(x[0, real])
            x[0, real] = change(x[0, real]).to(x)
            return (x, *arguments[1:])

        handle = layer.register_forward_pre_hook(hook)
        try:
            with torch.no_grad():
                logits = network(input_ids=torch.tensor([one["input_ids"]])).logits[0]
        finally:
            handle.remove()
        return (logits if causal else logits[None]), taken[0]

    mean = torch.cat([run(one, lambda x: x)[1] for one in read]).float().double().mean(dim=0)
    changes = {
        "loss": lambda x: x,
        "spliced": lambda x: dictionary.decode(dictionary.encode(x)),
        "zero": torch.zeros_like,
        "mean": lambda x: mean.expand_as(x),
    }
    rows = []
    for number, one in enumerate(read):
        logits = {name: run(one, change)[0] for name, change in changes.items()}
        if causal:
            wanted = torch.tensor(one["input_ids"][1:])
            logits = {name: value[:-1] for name, value in logits.items()}
        elif logits["loss"].shape[1] == 1:
            logits = {name: torch.cat([torch.zeros_like(value), value], dim=1) for name, value in logits.items()}
        if not causal:
            wanted = logits["loss"].argmax(dim=1) if labels is None else torch.tensor([labels[number]])
        logs = {name: F.log_softmax(value, dim=-1) for name, value in logits.items()}
        row = {name: F.nll_loss(value, wanted, reduction="sum") for name, value in logs.items()}
        for name in ("spliced", "zero", "mean"):
            kl = F.kl_div(logs[name], logs["loss"], reduction="sum", log_target=True)
            row["kl" if name == "spliced" else f"kl_{name}"] = kl
        row["same"] = (logs["loss"].argmax(dim=1) == logs["spliced"].argmax(dim=1)).sum()
        rows.append({**{name: float(value) for name, value in row.items()}, "n": len(wanted)})
    return {name: np.array([row[name] for row in rows], dtype=float) for name in NAMES}


def jackknifed(totals, sizes):
    value, without = totals.sum() / sizes.sum(), (totals.sum() - totals) / (sizes.sum() - sizes)
    return pytest.approx((value, *jackknife_interval(float(value), without)), rel=1e-5, abs=1e-5)


def recovered(totals, sizes):
    """Unknown unless the loss that is lost is measurably above 0: by Student's interval or by Hall's."""
    known = mean_intervals(sizes[None])[0][0] > 0
    return jackknifed(totals, sizes) if known else pytest.approx((nan, nan, nan), nan_ok=True)


def test_the_loss_recovered_is_a_ratio_of_sums_over_texts():
    rng, n = np.random.default_rng(0), np.arange(3.0, 15.0)
    loss, spliced, zero, mean = (n * level + rng.normal(size=12) for level in (2.0, 2.5, 9.0, 5.0))
    changes = np.stack([np.stack([n, loss, other, n, n, n], axis=1) for other in (spliced, zero, mean)], axis=1)
    splice = _splice(changes, "next tokens")
    assert tuple(splice.loss_recovered) == jackknifed(zero - spliced, zero - loss)
    assert splice.loss_recovered.value == pytest.approx(6.5 / 7, abs=0.05)
    assert tuple(splice.loss_recovered_mean) == jackknifed(mean - spliced, mean - loss)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_every_metric_of_a_language_model_is_that_of_its_own_next_tokens(family):
    model = build(family)
    dictionary = dictionary_of(model)
    quality, by_hand = heedful.features.measure(dictionary, texts=LINES), computed_by_hand(family, dictionary)
    n, splice = by_hand["n"], quality.splice
    assert (splice.n_predictions, splice.loss_of, quality.n_texts) == (n.sum(), "next tokens", 9)
    assert splice.loss.value == pytest.approx(by_hand["loss"].sum() / n.sum(), rel=1e-5)
    for name in ("spliced", "zero", "mean"):
        assert getattr(splice, f"loss_{name}").value == pytest.approx(by_hand[name].sum() / n.sum(), rel=1e-5)
    zero, mean, spliced, loss = (by_hand[name] for name in ("zero", "mean", "spliced", "loss"))
    assert tuple(splice.loss_recovered) == recovered(zero - spliced, zero - loss)
    assert tuple(splice.loss_recovered_mean) == recovered(mean - spliced, mean - loss)
    assert tuple(splice.kl_score) == jackknifed(by_hand["kl_zero"] - by_hand["kl"], by_hand["kl_zero"])
    assert tuple(splice.kl_score_mean) == jackknifed(by_hand["kl_mean"] - by_hand["kl"], by_hand["kl_mean"])
    assert splice.kl.value == pytest.approx(by_hand["kl"].sum() / n.sum(), rel=1e-5)
    assert splice.agreement.value == by_hand["same"].sum() / n.sum()


@pytest.mark.parametrize("family", ["bert", "single-logit"])
def test_the_loss_of_a_classifier_is_that_of_its_own_prediction(family):
    dictionary = dictionary_of(build(family))
    splice, by_hand = heedful.features.measure(dictionary, texts=LINES).splice, computed_by_hand(family, dictionary)
    assert (splice.n_predictions, splice.loss_of) == (9, "own predictions")
    assert splice.loss.value == pytest.approx(by_hand["loss"].mean(), rel=1e-5)
    zero, loss = by_hand["zero"], by_hand["loss"]
    assert tuple(splice.loss_recovered) == recovered(zero - by_hand["spliced"], zero - loss)
    assert tuple(splice.kl_score) == jackknifed(by_hand["kl_zero"] - by_hand["kl"], by_hand["kl_zero"])
    n_same = int(by_hand["same"].sum())
    assert tuple(splice.agreement) == (n_same / 9, *wilson(n_same, 9))


def test_the_loss_of_a_classifier_is_that_of_labels_if_there_are_any():
    dictionary = dictionary_of(build("bert"))
    labels = [number % 3 for number in range(len(LINES))]
    splice = heedful.features.measure(dictionary, texts=LINES, label=["bad", "good", "neutral", *labels[3:]]).splice
    # The text without words has no row, so its label is left out too.
    by_hand = computed_by_hand("bert", dictionary, labels[:3] + labels[4:])
    assert splice.loss_of == "labels"
    predicted = build("bert")(LINES[:3] + LINES[4:]).argmax(axis=1)
    n_right = int((predicted == np.array(labels[:3] + labels[4:])).sum())
    assert tuple(splice.accuracy) == (n_right / 9, *wilson(n_right, 9))
    assert f"9 labels (accuracy {splice.accuracy})" in splice.summary
    assert splice.loss.value == pytest.approx(by_hand["loss"].mean(), rel=1e-5)
    assert splice.loss_spliced.value == pytest.approx(by_hand["spliced"].mean(), rel=1e-5)


def test_rows_of_texts_are_measured_as_rows_with_the_intervals_of_texts():
    model = build("gpt2")
    dictionary = dictionary_of(model)
    rows = text_rows(model, [model.encode(line) for line in LINES], find_site(model, "residual", 1))
    alone, quality = measure_rows(dictionary, rows.x, rows.document), heedful.features.measure(dictionary, texts=LINES)
    for name in ("explained_variance", "l0", "dead_share", "cosine"):
        assert getattr(quality, name) == pytest.approx(getattr(alone, name), rel=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5"])
def test_metrics_on_texts_do_not_depend_on_the_batch_size(family):
    dictionary = dictionary_of(build(family))
    one, many = (heedful.features.measure(dictionary, texts=LINES, batch_size=n).as_dict() for n in (1, 1024))
    for name, value in one.items():
        assert value == many[name] or value == pytest.approx(many[name], rel=1e-5, abs=1e-7), name


WITH_MLP = ("own-gpt2", "mistral", "bart", "t5", "vit", "encoder")
"""Families whose layers have a module that is called an MLP."""
PARTS = [*product((*WITH_MLP, "transformer", "torch"), ["residual"]), *product(WITH_MLP, ["mlp"])]


@pytest.mark.parametrize(("family", "part"), PARTS)
def test_a_perfect_dictionary_recovers_everything_in_every_family(family, part):
    from tests.features.test_activations import inputs_for

    model, inputs = build(family), inputs_for(family)
    site = find_site(model, part, 1)
    d_e = text_rows(model, [model.encode(one) for one in inputs], site).x.shape[1]
    card = Card("relu", model=model.fingerprint, part=part, layer=1)
    own = random_dictionary(2 * d_e, d_e, card=card)
    both = torch.cat([torch.eye(d_e), -torch.eye(d_e)])
    rule = replace(own.rule, thresholds=torch.zeros(1, 2 * d_e))
    perfect = replace(own, W_enc=both, W_dec=both, b_enc=torch.zeros(2 * d_e), b_dec=torch.zeros(d_e), rule=rule)
    quality = heedful.features.measure(perfect.bound(model), texts=inputs)
    assert quality.explained_variance.value == pytest.approx(1)
    splice = quality.splice
    assert isnan(splice.loss_recovered.value) or splice.loss_recovered.value == pytest.approx(1, abs=1e-4)
    assert splice.loss_spliced.value == pytest.approx(splice.loss.value, rel=1e-5)
    assert quality.splice.kl_score.value == pytest.approx(1, abs=1e-4)
    assert quality.splice.agreement.value == 1


def test_our_gpt2_has_the_numbers_of_that_of_transformers():
    theirs, ours = build("gpt2"), build("own-gpt2")
    dictionary = dictionary_of(theirs)
    own = replace(dictionary, card=replace(dictionary.card, model=ours.fingerprint)).bound(ours)
    one, other = (heedful.features.measure(d, texts=LINES).as_dict() for d in (dictionary, own))
    for name, value in one.items():
        assert value == other[name] or value == pytest.approx(other[name], rel=1e-4, abs=1e-6), name


def test_the_text_form_names_what_was_measured():
    quality = heedful.features.measure(dictionary_of(build("gpt2")), texts=LINES)
    own, spliced = str(quality).splitlines()
    assert "rows of 9 texts: explained variance" in own
    assert spliced.startswith("spliced into the model, ")
    assert "loss recovered" in spliced


def test_many_texts_are_reduced_to_some_that_do_not_depend_on_their_order():
    dictionary = dictionary_of(build("gpt2"))
    one = heedful.features.measure(dictionary, texts=LINES, n_texts=6)
    other = heedful.features.measure(dictionary, texts=LINES[::-1], n_texts=6)
    assert one.n_texts == other.n_texts <= 6
    assert one.explained_variance.value == pytest.approx(other.explained_variance.value)


def test_copies_of_a_text_are_measured_once():
    dictionary = dictionary_of(build("gpt2"))
    one = heedful.features.measure(dictionary, texts=LINES, n_texts=6)
    assert heedful.features.measure(dictionary, texts=[*LINES, *LINES[:7]], n_texts=6).as_dict() == one.as_dict()


def test_a_few_texts_have_no_interval():
    splice = heedful.features.measure(dictionary_of(build("gpt2")), texts=LINES[:3]).splice
    assert isnan(splice.kl_score.low)
    assert not isnan(splice.kl_score.value)


def test_the_loss_recovered_is_unknown_where_zeros_do_not_raise_the_loss():
    changes = np.zeros((2, 3, 6))
    changes[:, :, 0] = 1
    changes[:, :, 1] = 1.8
    changes[:, 0, 2], changes[:, 1, 2], changes[:, 2, 2] = 1.9, 1.1, 2.8
    splice = _splice(changes, "labels")
    assert str(splice.loss_recovered) == "unknown"
    assert "loss recovered unknown (against the mean ablation 0.9" in splice.summary


def test_bad_input_is_a_sentence(tmp_path):
    model = build("gpt2")
    dictionary = dictionary_of(model)
    unbound = replace(dictionary, model=None)
    for rows in (["a good film"], "texts.csv"):
        with pytest.raises(BadInput, match="Give rows of activations, or texts="):
            heedful.features.measure(dictionary_of(build("gpt2")), rows)
    with pytest.raises(heedful.HeedfulError, match="Give rows of activations, or texts="):
        heedful.features.measure(dictionary)
    with pytest.raises(heedful.HeedfulError, match="give it as model="):
        heedful.features.measure(unbound, texts=LINES)
    with pytest.raises(heedful.HeedfulError, match="belongs to the model"):
        heedful.features.measure(unbound, texts=LINES, model=build("llama"))
    with pytest.raises(heedful.HeedfulError, match="does not say which layer"):
        heedful.features.measure(replace(dictionary, card=Card("topk")), texts=LINES)
    with pytest.raises(heedful.HeedfulError, match="no tokens but special ones"):
        heedful.features.measure(dictionary, texts=["", ""])
    with pytest.raises(heedful.HeedfulError, match="data set"):
        heedful.features.measure(dictionary, texts="imbd")
