import numpy as np
import torch

from heedful.generation.strategies import Greedy, Nucleus, Sampling
from heedful.generation.writing import write_tokens
from heedful.models.attention_hook import still
from tests.families import build

PROMPT = "the film was good"


def write(model, strategy, limit=12, seed=0, watch=lambda *_: None):
    with torch.no_grad(), still(model.network):
        return write_tokens(model, model.encode(PROMPT), strategy, limit, np.random.default_rng(seed), watch)


def test_every_step_is_that_of_reading_the_whole_text_again():
    model = build("llama")
    document = model.encode(PROMPT)
    steps, _ = write(model, Sampling(1.5))
    ids = [*document.ids.tolist(), *(step.id for step in steps)]
    with torch.no_grad():
        log_p = torch.log_softmax(model.network(torch.tensor([ids])).logits[0], dim=-1).numpy()
    for place, step in enumerate(steps, start=len(document.ids) - 1):
        assert np.isclose(step.log_probability, log_p[place, step.id], atol=1e-9)
        best = np.argsort(-log_p[place])[:10]
        assert [a.id for a in step.alternatives[:10]] == best.tolist()
        assert np.allclose([a.probability for a in step.alternatives[:10]], np.exp(log_p[place, best]), atol=1e-9)
        law = Sampling(1.5).law(log_p[place])
        assert np.allclose([a.law for a in step.alternatives], [law[a.id] for a in step.alternatives], atol=1e-9)


def test_only_kept_tokens_are_written():
    steps, _ = write(build("gpt2"), Nucleus(0.3), 20)
    assert all(next(a.kept for a in step.alternatives if a.id == step.id) for step in steps)
    assert all(step.mass >= 0.3 for step in steps)
    assert len({step.n_kept for step in steps}) > 1


def test_writing_stops_at_the_limit_and_progress_counts_every_token():
    seen = []
    steps, ended = write(build("gpt2"), Greedy(), 5, watch=lambda *counts: seen.append(counts))
    assert (len(steps), ended) == (5, "length")
    assert seen == [(n, 5) for n in range(1, 6)]


def test_writing_stops_at_an_end_token(monkeypatch):
    model = build("gpt2")
    third = write(model, Greedy())[0][2].id
    monkeypatch.setattr(model, "end_ids", frozenset({third}))
    steps, ended = write(model, Greedy())
    first = [step.id for step in steps].index(third)
    assert (len(steps), ended) == (first + 1, "end of text")


def test_the_same_seed_draws_the_same_tokens():
    model = build("gpt2")
    ids = [[step.id for step in write(model, Sampling(), seed=seed)[0]] for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]
