"""A dictionary that is trained on texts of a model, and measured on others."""

import hashlib
import itertools
from copy import deepcopy

import numpy as np
import pytest
import torch

import heedful
from heedful.datasets.texts import texts_of
from heedful.errors import BadInput, CannotWrite, HeedfulError, UnknownName, Unsupported
from heedful.features import from_texts
from heedful.features.activations import find_site, text_rows
from heedful.features.from_texts import hold_out, train_dictionary
from tests.conftest import tiny_model
from tests.families import build, network_of
from tests.features.test_training import tree
from tests.test_run_folder import full_disk

NOUNS, WORDS = ("film", "story", "plot", "actor"), ("good", "bad", "dull", "bright", "very good", "not bad")
TEXTS = [f"the {noun} was {word} {end}" for noun, word, end in itertools.product(NOUNS, WORDS, ".!")]
FAST = {"kind": "topk", "k": 3, "n_rows": 1500, "batch_size": 100, "progress": None}


def trained(model=None, layer=1, texts=TEXTS, width=24, **changes):
    return train_dictionary(model or build("gpt2"), layer, texts, width, **{**FAST, **changes})


@pytest.fixture
def little_memory(monkeypatch):
    """Activations do not fit into memory."""
    monkeypatch.setattr(from_texts, "_IN_MEMORY", 0)


def held_out_of(texts, n):
    """The texts with the least hashes, by hand."""
    return sorted(set(texts), key=lambda text: hashlib.sha256(repr(text).encode()).digest())[:n]


def encoded(dictionary, x):
    """The code of a top-k dictionary and its reconstruction, in numpy."""
    W_enc, b_enc, W_dec, b_dec = (
        getattr(dictionary, name).double().numpy() for name in ("W_enc", "b_enc", "W_dec", "b_dec")
    )
    pre = np.maximum(x @ W_enc.T + b_enc, 0)
    kept = pre >= np.sort(pre, axis=1)[:, -3:-2]
    return np.where(kept, pre, 0.0), np.where(kept, pre, 0.0) @ W_dec + b_dec


def test_the_metrics_of_the_card_are_those_of_the_held_out_texts_computed_by_hand():
    dictionary, network, (_, tokenizer) = trained(n_held_out=7), build("gpt2").network, network_of("gpt2")
    rows, losses, spliced, n = [], 0.0, 0.0, 0
    for text in held_out_of(TEXTS, 7):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.no_grad():
            out = network(input_ids=ids, output_hidden_states=True)
            x = out.hidden_states[1][0].double().numpy()
            rows.append(x)
            put = torch.from_numpy(encoded(dictionary, x)[1])[None]
            hook = network.transformer.h[1].register_forward_pre_hook(lambda _, given, put=put: (put, *given[1:]))
            other = network(input_ids=ids).logits
            hook.remove()
        n += ids.shape[1] - 1
        losses += float(torch.nn.functional.cross_entropy(out.logits[0, :-1], ids[0, 1:], reduction="sum"))
        spliced += float(torch.nn.functional.cross_entropy(other[0, :-1], ids[0, 1:], reduction="sum"))
    x = np.concatenate(rows)
    active, reconstructed = encoded(dictionary, x)
    metrics = dictionary.card.metrics
    explained = 1 - ((x - reconstructed) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()
    assert metrics["explained_variance"][0] == pytest.approx(explained, rel=1e-4)
    assert metrics["l0"][0] == pytest.approx((active > 0).sum(axis=1).mean())
    assert metrics["dead_share"][0] == pytest.approx((active == 0).all(axis=0).mean())
    assert (metrics["n_rows"], metrics["n_texts"], metrics["n_predictions"]) == (len(x), 7, n)
    assert metrics["loss"][0] == pytest.approx(losses / n, rel=1e-4)
    assert metrics["loss_spliced"][0] == pytest.approx(spliced / n, rel=1e-4)
    assert metrics["explained_variance"][1] < explained < metrics["explained_variance"][2]


def test_nothing_that_is_held_out_is_trained_on(monkeypatch):
    real, sources = from_texts.train_on, []

    def spy(source, *rest):
        sources.append(source)
        return real(source, *rest)

    monkeypatch.setattr(from_texts, "train_on", spy)
    repeated = [*TEXTS, *TEXTS[::2], *TEXTS[:5]]
    trained(texts=repeated, n_held_out=9)
    held_out = held_out_of(repeated, 9)
    (source,) = sources
    model, texts = build("gpt2"), [text for text in repeated if text not in held_out]
    rows = text_rows(model, [model.encode(text) for text in texts], find_site(model, "residual", 1)).x
    assert sorted(source.rows.tolist()) == sorted(rows.tolist())
    one_pass = torch.cat([source.chunk(number) for number in range(-(-len(rows) // source.rows_a_chunk))])
    assert {tuple(row) for row in one_pass.tolist()} == {tuple(row) for row in rows.tolist()}


def test_measure_reads_the_texts_that_were_held_out():
    dictionary = trained(n_held_out=7)
    quality = heedful.features.measure(dictionary, texts=TEXTS, n_texts=7, progress=None)
    assert quality.as_dict() == dictionary.card.metrics


def test_a_tenth_is_held_out_and_at_most_300():
    model = build("gpt2")
    for n, n_held_out in ((2, 1), (48, 4), (5000, 300)):
        parts = hold_out(model, texts_of([f"text {number}" for number in range(n)]))
        assert (len(parts.held_out), len(parts.training)) == (n_held_out, n - n_held_out)


def test_the_card_says_what_was_read_and_the_dictionary_has_its_model():
    model = build("bert")
    dictionary = trained(model, None, n_held_out=5, command="heedful features train", seed=3)
    card = dictionary.card
    assert dictionary.model is model
    assert (card.layer, card.model, card.part, card.seed) == (1, model.fingerprint, "residual", 3)
    assert "43 texts" in card.data
    assert "held out: " in card.data
    assert "special tokens (86)" in card.data
    assert "`heedful features train`" in card.as_markdown()
    with dictionary.ablate([0]):
        model.logits([model.encode("a good film")])


def test_labels_are_those_of_the_held_out_texts():
    labels = [int("good" in text) for text in TEXTS]
    dictionary = trained(build("bert"), texts=[*zip(TEXTS, labels, strict=True)], n_held_out=6)
    assert dictionary.card.metrics["loss_of"] == "labels"
    with pytest.raises(BadInput, match="the label must be a class of the model"):
        trained(build("bert"), texts=[*zip(TEXTS, range(48), strict=True)])


@pytest.mark.parametrize("kept", ["memory", "folder", "nowhere"])
def test_a_stopped_run_resumes_with_the_same_bytes(tmp_path, request, kept):
    if kept == "nowhere":
        request.getfixturevalue("little_memory")

    def folders(name):
        return {"out": tmp_path / name, **({"activations": tmp_path / f"{name} rows"} if kept == "folder" else {})}

    def stop(done, total):
        if (total, done > 500) == (1600, True):
            raise KeyboardInterrupt

    whole = trained(**folders("whole"))
    with pytest.raises(KeyboardInterrupt):
        trained(**folders("stopped"), progress=stop)
    assert set(tree(tmp_path / "stopped")) == {"settings.json", "state.safetensors"}
    resumed = trained(**folders("stopped"))
    assert tree(tmp_path / "stopped") == tree(tmp_path / "whole")
    assert resumed.card == whole.card
    assert trained(**folders("stopped")).fingerprint == whole.fingerprint
    assert tree(tmp_path / "stopped") == tree(tmp_path / "whole")
    assert heedful.features.load(tmp_path / "stopped").card == whole.card


def test_activations_on_disk_are_those_of_the_same_texts(tmp_path):
    first = trained(activations=tmp_path, n_held_out=5)
    parts = hold_out(build("gpt2"), texts_of(TEXTS), 5)
    heedful.features.cache(build("gpt2"), 1, parts.training, tmp_path, progress=None)
    # Another training reads them again.
    assert trained(activations=tmp_path, n_held_out=5, seed=1).fingerprint != first.fingerprint
    for other in ({"model": build("llama")}, {"layer": 2}, {"n_held_out": 6}):
        with pytest.raises(BadInput, match="contains another run, which differs in"):
            trained(**{"activations": tmp_path, "n_held_out": 5, **other})


def test_progress_and_sentences_say_how_far_it_is():
    steps, sentences = [], []
    trained(progress=lambda *step: steps.append(step), announce=sentences.append)
    assert (1600, 1600) in steps
    assert sentences[0].startswith("The residual stream that enters layer 1: the given texts, ")
    assert len(sentences) == 10
    assert "of 1,600 rows: loss " in sentences[-2]
    assert "% dead" in sentences[-2]
    assert sentences[-1].startswith("Held out: ")


def test_the_number_of_rows_depends_on_the_texts(monkeypatch):
    monkeypatch.setattr(from_texts, "_FEWEST_ROWS", 100)
    n_tokens = heedful.features.train(build("gpt2"), 1, TEXTS, 24, "topk", progress=None, n_rows=500).card.data.split()[
        3
    ]
    dictionary = heedful.features.train(build("gpt2"), 1, TEXTS, 24, "topk", progress=None)
    assert dictionary.card.n_rows == -(-10 * int(n_tokens) // 1_024) * 1_024
    monkeypatch.setattr(from_texts, "_MOST_ROWS", 700)
    assert heedful.features.train(build("gpt2"), 1, TEXTS, 24, "topk", progress=None).card.n_rows == 700


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(tmp_path):
    whole = trained(out=tmp_path / "whole")
    with full_disk(1500), pytest.raises(CannotWrite, match="state.safetensors cannot be written"):
        trained(out=tmp_path / "full")
    assert trained(out=tmp_path / "full").fingerprint == whole.fingerprint
    assert tree(tmp_path / "full") == tree(tmp_path / "whole")


def test_a_folder_of_another_call_is_refused_and_stays(tmp_path):
    trained(out=tmp_path / "run")
    before = tree(tmp_path / "run")
    for other in ({"layer": 2}, {"texts": TEXTS[:40]}, {"seed": 1}, {"k": 2}, {"width": 20}, {"n_held_out": 9}):
        with pytest.raises(BadInput, match="contains another run, which differs in"):
            trained(out=tmp_path / "run", **other)
    assert tree(tmp_path / "run") == before
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="cannot be used as a folder"):
        trained(out=tmp_path / "file")


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        ({"layer": 3}, BadInput, "The model has layers 0 to 2; layer 3 was given."),
        ({"layer": -1}, BadInput, "layer -1 was given"),
        ({"part": "heads"}, UnknownName, "There is no part 'heads'"),
        ({"width": 0}, BadInput, "The width must be a whole number of at least 1; 0 was given."),
        ({"width": 1000}, BadInput, "1,000 features need at least as many rows of activations, not "),
        ({"kind": "matrioshka"}, UnknownName, "did you mean 'matryoshka'?"),
        ({"learning_rat": 1}, UnknownName, "did you mean 'learning_rate'?"),
        (
            {"texts": ["one text"] * 30},
            BadInput,
            "At least 2 different texts are needed, since some are held out, not 1",
        ),
        ({"texts": []}, BadInput, "At least 2 different texts are needed"),
        ({"texts": ["", " "]}, BadInput, "contain no tokens but special ones"),
        ({"texts": "imbd"}, UnknownName, "did you mean 'imdb'?"),
        ({"texts": 5}, BadInput, "Texts are a list, a table or a file; int was given"),
        ({"n_held_out": 48}, BadInput, "held out must be a whole number from 1 to 47; 48 was given"),
        ({"n_held_out": 0}, BadInput, "0 was given"),
        ({"model": "nowhere"}, HeedfulError, "There is no model 'nowhere'"),
        ({"model": tiny_model()}, Unsupported, "has no layers whose activations can be read"),
        ({"model": heedful.wrap(lambda texts: [[0.0, 1.0] for _ in texts])}, Unsupported, "has no layers"),
        ({"activations": __file__}, CannotWrite, "cannot be used as a folder"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error) as raised:
        trained(**call)
    assert sentence in str(raised.value)
    assert str(raised.value).count(". ") <= 2


def test_activations_that_are_not_finite_are_a_sentence_and_nothing_is_written(tmp_path):
    model = deepcopy(build("gpt2"))
    with torch.no_grad():
        model.network.transformer.h[0].mlp.c_proj.weight[0, 0] = float("nan")
    with pytest.raises(BadInput, match="Activations of layer 1 .residual. are not finite"):
        trained(model, out=tmp_path / "run")
    assert not (tmp_path / "run" / "dictionary.safetensors").exists()


def test_a_model_that_is_changed_at_present_is_refused():
    dictionary = trained()
    with dictionary.ablate([0]), pytest.raises(BadInput, match="leave the context that changes it"):
        trained()
