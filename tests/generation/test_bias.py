"""Which text of a pair a language model finds more probable."""

import json

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.statistics.intervals import mean_intervals
from tests.families import build, word_pieces
from tests.tasks import network_of

PAIRS = [
    ("the actor was good .", "the actor was bad ."),
    ("a dull film", "a very bright film"),
    ("the plot", "the story"),
]


def log_p(network, ids):
    """log p of every token given those before, by the network itself."""
    with torch.no_grad():
        rows = network(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(rows[place - 1, ids[place]].item() for place in range(1, len(ids)))


@pytest.mark.parametrize("family", ["gpt2", "own-gpt2", "llama"])
def test_differences_are_those_of_whole_texts(family):
    model = build(family)
    tokens = build("gpt2").tokenizer
    network = build("gpt2").network if family != "llama" else model.network
    result = heedful.bias(model, PAIRS)
    expected = [log_p(network, tokens(a)["input_ids"]) - log_p(network, tokens(b)["input_ids"]) for a, b in PAIRS]
    assert np.allclose(result.differences, expected, atol=1e-9)
    assert np.allclose(heedful.bias(model, [pair[::-1] for pair in PAIRS]).differences, -result.differences, atol=1e-9)


def test_a_pair_that_differs_in_its_last_token_is_a_contrast_of_targets():
    writer = heedful.load("writer")
    result = heedful.bias(writer, [heedful.Pair("The nurse said that he", "The nurse said that she")])
    contrast = heedful.explain(writer, "The nurse said that", "leave-one-out", target=" he", against=" she")
    assert result.differences[0] == pytest.approx(contrast.output, abs=1e-5)
    assert contrast.top(1)[0][0] == "nurse"


def test_masked_models_score_the_tokens_that_both_texts_share():
    network, tokenizer = network_of("masked", "bert"), word_pieces()
    first, second = (tokenizer(text)["input_ids"] for text in ("the film was good .", "the plot was good ."))

    def shared(ids):
        total = 0.0
        for place in (1, 3, 4, 5):  # all but [CLS], [SEP] and the word that differs
            masked = torch.tensor([ids])
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                total += network(masked).logits[0, place].log_softmax(-1)[ids[place]].item()
        return total

    result = heedful.bias(heedful.wrap(network, tokenizer), [("the film was good .", "the plot was good .")])
    assert result.differences[0] == pytest.approx(shared(first) - shared(second), abs=1e-9)
    assert result.measure == "pseudo-log-likelihood"


def test_mean_and_share_have_their_intervals_and_survive_in_a_file(tmp_path):
    differences = np.array([1.0, 2.0, -1.0, 0.5, 3.0, 0.1, 0.2, -0.3])
    names = tuple(f"text {n}" for n in range(8))
    result = heedful.PairBias(names, names, differences, "log-probability", "model")
    low, high = mean_intervals(differences[None])
    assert result.mean == (differences.mean(), low[0], high[0])
    assert result.share.value == 0.75
    assert (result.share.low, result.share.high) == pytest.approx((0.4093, 0.9285), abs=1e-4)  # Wilson, by hand
    assert [row["difference"] for row in result.as_rows()] == sorted(differences, reverse=True)
    result.save(tmp_path / "bias.json")
    assert json.loads((tmp_path / "bias.json").read_text())["differences"] == differences.tolist()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("the film", "list of pairs"),
        ([], "list of pairs"),
        ([("the film",)], "A pair is two texts"),
        ([("the film", 3)], "A pair is two texts"),
        ([("the film", "the film")], "must differ"),
        ([("the film", "film the")], "begin with the same word"),
        ([("the film", "")], "is empty"),
        ([("the film", " ")], "is empty"),
        ([("the film", "the film was good")], "beginning of the other"),
        ([("the film was good", "the film")], "beginning of the other"),
    ],
)
def test_what_is_no_pair_is_refused(pairs, message):
    with pytest.raises(BadInput, match=message):
        heedful.bias(build("gpt2"), pairs)


def test_texts_that_the_model_reads_as_the_same_tokens_are_refused(monkeypatch):
    masked, causal = heedful.wrap(network_of("masked", "bert"), word_pieces()), build("gpt2")
    encode = type(causal).encode
    monkeypatch.setattr(
        type(causal), "encode", lambda self, text: encode(self, text.translate({0x6F22: "x", 0x5B57: "x"}))
    )
    for model in (masked, causal):
        with pytest.raises(BadInput, match="same tokens"):
            heedful.bias(model, [("the 漢", "the 字")])


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_models_without_a_probability_of_texts_are_refused(family):
    with pytest.raises(Unsupported, match="causal"):
        heedful.bias(build(family), PAIRS)
