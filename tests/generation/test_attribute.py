from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.generation.continuation import Continuation
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]
SENTENCES = {
    "The prompt is empty": {"prompt": " "},
    "The output is empty": {"output": " "},
    "The output has no tokens": {"output": []},
    "the output contains another number": {"output": [10**6]},
    "There is no method 'lima'; did you mean": {"method": "lima"},
    r"\(3, 9\) was given": {"of": (3, 9)},
    "give as many, or of=.sequence.": {"against": "bad bad bad bad bad bad bad bad"},
    "give another": {"output": "bad", "against": "bad"},
    "an entropy is of no output": {"measure": "entropy", "output": "bad", "against": "dull"},
    "give a context": {"measure": "kl"},
    "There are no passages": {"unit": "passage"},
    "no chat template": {"chat": True},
    "There is no setting": {"n_smaples": 3},
    "shorten them": {"prompt": "the film was good " * 40},
    "Shorten one of them": {"output": [40] * 80},
    "the memory limit is": {"memory": "1KB"},
    "seconds must be": {"seconds": -1},
    "Earlier output is in no passage": {"context": ["a bad film"], "earlier": "source"},
    "frozen-cache has the absence": {"method": "frozen-cache", "absence": "replace"},
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_cannot_be_explained_is_refused_in_a_sentence(sentence):
    asked = {"prompt": PROMPT, "output": OUTPUT, "method": "leave-one-out", **SENTENCES[sentence]}
    with pytest.raises((BadInput, Unsupported), match=f"(?i){sentence}") as error:
        heedful.attribute(build("gpt2"), **asked)
    assert len(str(error.value)) < 900
    assert "\n" not in str(error.value)


def test_a_classifier_writes_nothing(tiny):
    with pytest.raises(Unsupported, match="does not write text"):
        heedful.attribute(tiny, PROMPT, "bad")


def test_without_an_output_the_model_writes_it_greedily():
    model = build("llama")
    table = heedful.attribute(model, PROMPT, None, "leave-one-out", max_new=5)
    ids = list(heedful.generate(model, PROMPT, max_new=5).ids)
    assert table.document.ids[-table.n_written :].tolist() == ids


def test_a_generation_is_an_output_after_its_own_prompt_alone():
    model = build("gpt2")
    written = heedful.generate(model, PROMPT, "sampling", max_new=4, seed=1)
    table = heedful.attribute(model, PROMPT, written, "leave-one-out")
    n = table.n_written
    assert table.values == pytest.approx(written.log_probabilities[:n], abs=1e-9)
    with pytest.raises(BadInput, match="after another prompt"):
        heedful.attribute(model, "a bad story", written)


def test_an_end_token_at_once_is_a_sentence(monkeypatch):
    model = build("gpt2")
    end = next(iter(model.end_ids))
    with torch.no_grad():
        head = model.network.get_output_embeddings()
        bias = torch.zeros(head.weight.shape[0], dtype=head.weight.dtype)
        bias[end] = 1e4
    handle = head.register_forward_hook(lambda _, __, logits: logits + bias)
    try:
        with pytest.raises(BadInput, match="ended the text at once"):
            heedful.attribute(model, PROMPT, None, "leave-one-out")
    finally:
        handle.remove()


@pytest.mark.parametrize("method", ["leave-one-out", "shapley-sampled", "gradient-x-input"])
def test_logits_that_are_not_numbers_are_a_sentence(method):
    model = build("gpt2")
    head = model.network.get_output_embeddings()
    handle = head.register_forward_hook(lambda _, __, logits: logits * float("nan"))
    try:
        with pytest.raises(heedful.HeedfulError, match="not a finite number"):
            heedful.attribute(model, PROMPT, OUTPUT, method)
    finally:
        handle.remove()


@torch.no_grad()
def test_leave_one_out_is_the_drop_of_every_token():
    model = build("gpt2")
    table = heedful.attribute(model, PROMPT, OUTPUT, "leave-one-out", absence="replace")
    words = PROMPT.split()
    assert table.sources == tuple(words)
    whole = table.document
    for number in range(len(words)):
        ids = whole.ids.copy()
        ids[whole.words == number] = model.replacement_id
        logits = model.network(torch.tensor(ids)[None]).logits[0].log_softmax(dim=-1)
        places = range(len(ids) - len(OUTPUT) - 1, len(ids) - 1)
        values = [float(logits[place, token]) for place, token in zip(places, OUTPUT, strict=True)]
        assert table.scores[:, number] == pytest.approx(table.values - values, abs=1e-9)


def test_parts_are_sums_of_their_tokens():
    model = build("gpt2")
    tokens = heedful.attribute(model, PROMPT, OUTPUT, "leave-one-out")
    for of, place in (("sequence", slice(None)), ((1, 3), slice(1, 3))):
        whole = heedful.attribute(model, PROMPT, OUTPUT, "leave-one-out", of=of)
        assert whole.scores[0] == pytest.approx(tokens.scores[place].sum(axis=0), abs=1e-9)


def test_the_frozen_cache_shares_out_the_direct_effect():
    """At 4 sources all masks are evaluated; the oracle is the sum over subsets, by edited attention maps."""
    model = build("llama")
    table = heedful.attribute(model, PROMPT, OUTPUT, "frozen-cache")
    document = table.explanations[0].document
    n_written, n = len(OUTPUT), len(document.ids) - 1
    values = {}
    for subset in powerset(range(4)):
        gone = (document.words >= 0) & ~np.isin(document.words, subset)
        gone[n - n_written + 1 :] = False
        values[subset] = cut_values(model, document, gone[:-1], n_written)
    for source in range(4):
        others = [number for number in range(4) if number != source]
        expected = sum(
            (values[tuple(sorted((*subset, source)))] - values[subset]) / (4 * comb(3, len(subset)))
            for subset in powerset(others)
        )
        assert table.scores[:, source] == pytest.approx(expected, abs=1e-8)


def powerset(items):
    items = list(items)
    return [subset for size in range(len(items) + 1) for subset in combinations(items, size)]


def cut_values(model, document, gone, n_written):
    """Log-probabilities of the output where the positions that predict it do not attend to some tokens."""
    continuation = Continuation(model, tuple(map(str, range(n_written))), tuple((n,) for n in range(n_written)))
    first = len(gone) - n_written

    def edit(_layer, maps):
        own, maps = maps.diagonal(dim1=-2, dim2=-1).clone(), maps.clone()
        maps[:, :, first:, np.flatnonzero(gone)] = 0.0
        # Every position reads itself.
        maps.diagonal(dim1=-2, dim2=-1).copy_(own)
        return maps / maps.sum(dim=-1, keepdim=True)

    return continuation.edited([document], edit)[0]


def test_progress_counts_masks_or_parts():
    seen = {}
    for method in ("leave-one-out", "gradient-x-input"):
        seen[method] = []
        heedful.attribute(
            build("gpt2"), PROMPT, OUTPUT, method, progress=lambda done, total, m=method: seen[m].append((done, total))
        )
    assert seen["gradient-x-input"] == [(n, 4) for n in (1, 2, 3, 4)]
    assert seen["leave-one-out"][-1][0] == seen["leave-one-out"][-1][1] == 5


def test_passages_are_the_sources_of_a_context():
    passages = ["the film was dull .", "a bad story"]
    table = heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out", context=passages)
    assert table.sources == tuple(passages)
    assert table.settings["in_context"] is True


def test_passages_are_deleted_and_words_where_the_replacement_would_end_the_text():
    model = build("gpt2")
    assert model.replacement_id in model.end_ids
    for asked, absence in (
        ({}, "delete"),
        ({"context": ["a bad story"]}, "delete"),
        ({"earlier": "source"}, "replace"),
    ):
        table = heedful.attribute(model, PROMPT, OUTPUT, "leave-one-out", **asked)
        assert table.explanations[0].settings["absence"] == absence
    table = heedful.attribute(build("t5"), PROMPT, OUTPUT, "leave-one-out")
    assert table.explanations[0].settings["absence"] == "replace"
