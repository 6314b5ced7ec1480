"""What is measured of a trained model, against plain loops, and against `trust` and `probe` themselves."""

import numpy as np
import pytest

import heedful
from heedful.document.rationale import marked_units
from heedful.experiments.lectures.attention_training import (
    LabelledSplits,
    mean_loss,
    measure_attention,
    train_with_losses,
    untrained,
)
from heedful.experiments.reviews import marked_reviews
from heedful.models.classic.network import ClassicConfig
from heedful.models.fitting.better_attention import conicity
from heedful.models.fitting.fit import FitRecipe
from heedful.models.network import Config
from heedful.models.vocabulary import build_vocabulary

DRAWN = marked_reviews(100, seed=1)
SPLITS = LabelledSplits("synthetic", ("negative", "positive"), DRAWN[:48], DRAWN[48:60], DRAWN[60:])
CONFIGS = {
    "classic": ClassicConfig("average", d_e=8, d_hidden=8, T_max=64),
    "single layer": Config(n_heads=2, T_max=64, d_e=8, d_att=4, d_out=4),
}


def trained(kind, **weights):
    vocabulary = build_vocabulary([example.text for example in SPLITS.train])
    model = untrained(CONFIGS[kind], vocabulary, SPLITS.classes, 0)
    train_with_losses(model, SPLITS, FitRecipe(n_epochs=4, learning_rate=1e-2), weights)
    return model


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    return trained(request.param, rationale=0.3)


def test_measures_of_all_texts_are_means_of_plain_loops(model):
    row, shares, entropies, right = measure_attention(model, SPLITS, 6, 0), [], [], []
    for example in SPLITS.test:
        document = model.encode(example.text)
        heads, own = model.attention([document])[0, -1], marked_units(document, "word", example.rationale)
        words = heads[:, 1 : len(document.ids)]
        shares.append(words[:, own].sum(axis=1).mean())
        n = words.shape[1] if len(heads) == 1 else heads.shape[1]
        entropies.append(np.mean([-sum(a * np.log(a) for a in alpha if a > 0) / np.log(n) for alpha in heads]))
        right.append(model([example.text])[0].argmax() == example.label)
    assert row["marked"] == pytest.approx(np.mean(shares), rel=1e-4)
    assert row["attention entropy"] == pytest.approx(np.mean(entropies), rel=1e-4)
    assert row["accuracy"] == np.mean(right)
    assert ("conicity" in row) == (len(heads) == 1)


def test_the_rest_is_what_trust_and_probe_say(model):
    row = measure_attention(model, SPLITS, 6, 0)
    texts = list(SPLITS.test)
    report = heedful.trust(model, texts, ["attention-mean"], ["auprc", "sufficiency"], 6, scale="probability", seed=0)
    for m, name in enumerate(("auprc", "sufficiency")):
        for suffix, method in (("", "attention-mean"), (", random", "random")):
            assert row[name + suffix] == report.means[report.methods.index(method), m]
    probes = heedful.probe(model, texts, ["agreement", "permuted", "erasure", "sign-and-value"], 6, seed=0)
    for test, short, words in (
        ("agreement", "τ attention", "Kendall's τ of attention and leave-one-out, the word replaced"),
        ("erasure", "flips", "Share of decisions that flip without the largest weight"),
        ("sign-and-value", "for", "Share of the 5 words with most attention that are for the decision"),
    ):
        (finding,) = [one for one in probes[test].result.findings if one.what.startswith(words)]
        assert (row[short], row[f"{short}, null"]) == (finding.value.value, finding.null.value)
    assert row["shuffled"] == probes["permuted"].result.findings[0].value.value


def test_a_mean_loss_counts_every_text_once():
    model = trained("classic")
    documents = [model.encode(example.text) for example in SPLITS.test]
    assert len(documents) == 40
    assert mean_loss(model, documents, conicity) == pytest.approx(
        np.mean([mean_loss(model, [document], conicity) for document in documents]), rel=1e-4
    )


def test_a_model_begins_with_the_weights_of_its_seed():
    vocabulary = build_vocabulary([example.text for example in SPLITS.train])
    for config in CONFIGS.values():
        one, same, other = (untrained(config, vocabulary, SPLITS.classes, seed) for seed in (0, 0, 1))
        assert one.fingerprint == same.fingerprint != other.fingerprint
        assert one.network.W_e.std().item() == pytest.approx(0.1, rel=0.2)
