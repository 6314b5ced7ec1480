import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.generation.beam import Beam, search_beams
from heedful.models.attention_hook import still
from tests.families import build
from tests.generation.reference import PLAIN, written_by_transformers

PROMPT = "a very bad story"


def search(model, width, limit):
    with torch.no_grad(), still(model.network):
        return search_beams(model, model.encode(PROMPT), Beam(width), limit, lambda *_: None)


@pytest.mark.parametrize("family", ["gpt2", "own-gpt2", "llama", "qwen", "t5", "bart"])
@pytest.mark.parametrize("width", [2, 5])
def test_the_tokens_are_those_of_transformers(family, width):
    model, theirs = build(family), build("gpt2" if family == "own-gpt2" else family)
    for limit in (1, 6, 20):
        steps, _, _ = search(model, width, limit)
        assert [step.id for step in steps] == written_by_transformers(theirs, PROMPT, limit, num_beams=width)


@pytest.mark.parametrize("end", [1, 2, 3])
def test_the_tokens_are_those_of_transformers_if_texts_end_early(end, monkeypatch):
    # The best tokens of the first steps end a text, so that beams end all the time.
    model = build("gpt2")
    _, tree, _ = search(model, 3, 4)
    ends = sorted({node.id for node in tree if node.written or node.fate == "kept"})[:end]
    monkeypatch.setattr(model, "end_ids", frozenset(ends))
    lengths = set()
    for width in (2, 3, 4):
        steps, _, ended = search(model, width, 12)
        lengths.add(len(steps))
        assert [step.id for step in steps] == written_by_transformers(
            model, PROMPT, 12, num_beams=width, eos_token_id=ends
        )
        assert ended == ("end of text" if steps[-1].id in ends else "length")
    assert min(lengths) < 12


def test_with_a_beam_as_wide_as_the_vocabulary_the_best_text_of_all_is_written():
    model = build("t5")
    n = len(model.classes)
    document = model.encode(PROMPT)
    steps, _, _ = search(model, n if n <= 100 else 100, 2)
    with torch.no_grad(), still(model.network):
        first = torch.log_softmax(model.read(document).logits[0], -1).numpy()
        totals = np.full((n, n), -np.inf)
        for token in range(n):
            prefix = model.go_on(model.read(document), torch.tensor([token]))
            totals[token] = first[token] + torch.log_softmax(prefix.logits[0], -1).numpy()
    values = {(token,): first[token] for token in range(n) if token in model.end_ids}
    values |= {(a, b): totals[a, b] / 2 for a in range(n) for b in range(n) if a not in model.end_ids}
    assert tuple(step.id for step in steps) == max(values, key=values.get)


def test_the_tree_adds_up():
    model = build("llama")
    steps, tree, _ = search(model, 3, 6)
    for node in tree:
        parent = tree[node.parent] if node.parent >= 0 else None
        assert np.isclose(node.total, node.log_probability + (parent.total if parent else 0))
        assert node.depth == 1 + (parent.depth if parent else 0)
        assert parent is None or parent.fate == "kept"
        assert bool(node.why) == (node.fate == "pruned")
        assert node.token == model.classes[node.id]
    for depth in range(1, 7):
        level = [node for node in tree if node.depth == depth]
        assert len(level) == 6
        assert sum(node.fate == "kept" for node in level) == (3 if depth < 6 else 0)
        assert [node.total for node in level] == sorted((node.total for node in level), reverse=True)
    path = [node for node in tree if node.written]
    assert [node.id for node in path] == [step.id for step in steps]
    assert path[-1].fate == "finished"
    assert path[-1].value == max(node.value for node in tree if node.fate == "finished")


def test_a_step_keeps_the_tokens_by_which_the_search_went_on_from_its_beam():
    steps, tree, _ = search(build("llama"), 3, 6)
    for step in steps:
        node = next(node for node in tree if node.written and node.depth == steps.index(step) + 1)
        siblings = [other for other in tree if other.parent == node.parent and other.fate != "pruned"]
        assert step.n_kept == len(siblings)
        assert np.isclose(step.mass, sum(np.exp(other.log_probability) for other in siblings))
        assert all(alternative.law is None for alternative in step.alternatives)


def test_demanded_tokens_are_written_and_cost_nothing(monkeypatch):
    model = build("bart")
    monkeypatch.setattr(model, "first_id", 7)
    monkeypatch.setattr(model, "last_id", 1)
    for width in (2, 4):
        steps, tree, ended = search(model, width, 6)
        ids = [step.id for step in steps]
        forced = {**PLAIN, "forced_bos_token_id": 7, "forced_eos_token_id": 1}
        assert ids == written_by_transformers(model, PROMPT, 6, num_beams=width, **forced)
        assert tree[0].total == 0 != steps[0].log_probability
        assert steps[0].forced
        assert ended == ("length" if len(ids) == 6 else "end of text")


@pytest.mark.parametrize("width", [1, 0, 101])
def test_a_width_that_is_no_search_is_refused(width):
    with pytest.raises(BadInput, match=f"width is the number of beams, from 2 to 100; {width} was given"):
        Beam(width)
