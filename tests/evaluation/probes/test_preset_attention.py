"""A bag of words under given attention: planted models that point at the deciding word, or at another one."""

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probes import preset_attention
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.evaluation.probes.preset_attention import PresetAttention, attention_among_words
from heedful.models.network import Config, Network, positional_table
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.models.vocabulary import Vocabulary
from heedful.run_folder import RunFolder
from tests.families import build

GOOD, BAD = ("good", "bright", "fine", "great"), ("bad", "dull", "poor", "weak")
N_WORDS = 8


def pointing(place, sharpness=60.0):
    """A model whose attention is on the word at a place, whatever the word; uniform with a sharpness of 0."""
    config = Config(n_heads=2, T_max=N_WORDS + 1, d_e=16, d_att=16, d_out=4)
    vocabulary = Vocabulary(("[cls]", "[unk]", *GOOD, *BAD))
    table = positional_table(config.positional, config.T_max, config.d_e)
    weights = {name: w.double() for name, w in initial_weights(config, len(vocabulary), 0).items()}
    weights["W_e"] = torch.zeros_like(weights["W_e"])
    query = torch.outer(table[place], table[0]) / table[0].square().sum()
    weights["W_q"] = sharpness * query.expand(2, -1, -1).clone()
    weights["W_k"] = torch.eye(16).double().expand(2, -1, -1).clone()
    return SingleLayer(Network(config, weights).double(), vocabulary, ["negative", "positive"])


def texts(n, seed):
    """The first word decides; the others are drawn from both classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    rows = rng.choice([*GOOD, *BAD], (n, N_WORDS))
    rows[:, 0] = [rng.choice(GOOD if label else BAD) for label in labels]
    return [(" ".join(row), int(label)) for row, label in zip(rows, labels, strict=True)]


def inquiry_of(model, n_train=150, n_test=60, folder=None):
    def read(pairs):
        return tuple(model.encode(text) for text, _ in pairs), tuple(label for _, label in pairs)

    training, tested = read(texts(n_train, 1)), read(texts(n_test, 2))
    return Inquiry(model, *tested, folder=folder, training=lambda: TrainAndTest(*training, *tested))


def value(result, what):
    (found,) = [finding.value for finding in result.findings if what in finding.what]
    return found


def test_attention_on_the_deciding_word_helps_and_attention_elsewhere_does_not():
    right, wrong, even = (
        PresetAttention().measure(inquiry_of(model)) for model in (pointing(1), pointing(5), pointing(1, sharpness=0.0))
    )
    assert (right.answer, wrong.answer, even.answer) == ("yes", "no", "no")
    assert value(right, "with this model's attention, trained").value > 0.95
    assert value(right, "with uniform attention").value < 0.85
    assert value(wrong, "with this model's attention, trained").value < 0.65
    gain = value(even, "label gained with this model's")
    assert gain.value == pytest.approx(0, abs=1e-9)


def test_the_weights_are_the_model_s_attention_among_words_whatever_shares_the_batch():
    model = pointing(2, sharpness=3.0)
    documents = [model.encode(text) for text in ("good bad fine", "dull poor weak great good", "bad")]
    rows = attention_among_words(model, documents)
    table = positional_table("equation-3", N_WORDS + 1, 16).numpy()
    for document, row in zip(documents, rows, strict=True):
        scores = 3.0 * table @ table[2] / 4
        weights = np.exp(scores[1 : len(document.ids)])
        np.testing.assert_allclose(row, weights / weights.sum(), rtol=1e-9)


def test_several_heads_are_averaged_before_the_weights_are_divided_by_their_sum():
    bert = build("bert")
    document = bert.encode("good film")
    maps = bert.attention([document])[0, -1]
    mean = maps.mean(axis=0)[: len(document.ids)][document.words >= 0]
    np.testing.assert_allclose(attention_among_words(bert, [document])[0], mean / mean.sum(), rtol=1e-9)


def test_a_stopped_run_resumes_after_its_last_fit(tmp_path, monkeypatch):
    whole = PresetAttention().measure(inquiry_of(pointing(1)))
    folder = RunFolder(tmp_path)
    PresetAttention(n_seeds=2).measure(inquiry_of(pointing(1), folder=folder))
    kinds = []
    fitted = preset_attention.fitted_bag
    monkeypatch.setattr(preset_attention, "fitted_bag", lambda *args: kinds.append(args[3]) or fitted(*args))
    assert PresetAttention().measure(inquiry_of(pointing(1), folder=folder)) == whole
    assert kinds == [2] * 4, "the third seed alone, with its four kinds of attention"


def test_a_hugging_face_model_is_probed_by_its_own_tokens():
    report = heedful.probe(
        build("bert"), texts(10, 3), "preset-attention", train=texts(30, 4), progress=False, n_seeds=2
    )
    accuracy = value(report["preset-attention"].result, "with this model's attention, trained")
    assert 0 <= accuracy.low <= accuracy.value <= accuracy.high <= 1


def test_what_cannot_be_probed_is_refused_in_a_sentence():
    with pytest.raises(BadInput, match="needs n_seeds ≥ 2"):
        PresetAttention(n_seeds=1)
    inquiry = inquiry_of(pointing(1))
    inquiry.training = None
    with pytest.raises(Unsupported, match="give texts with labels"):
        PresetAttention().measure(inquiry)
    vit = build("vit")
    image = vit.encode(np.zeros((16, 16, 3), dtype=np.uint8))
    inquiry = Inquiry(vit, (image,), (0,), training=lambda: TrainAndTest((image,), (0,), (image,), (0,)))
    with pytest.raises(Unsupported, match="reads images; a bag of words needs texts"):
        PresetAttention().measure(inquiry)
