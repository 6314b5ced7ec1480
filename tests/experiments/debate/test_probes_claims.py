import pytest

from heedful.experiments.debate.probes_claims import chosen, debate_claims, quantity, taus

MODEL = {"corpus": "ag-news", "encoder": "bilstm", "attention": "tanh", "word_scale": 0.1, "seed": 0}


def finding(probe, key, value, low=None, high=None, **changes):
    row = {**MODEL, "probe": probe, "answer": "no", "key": key, "finding": key, "value": value, "null": 0.1}
    return {**row, "low": low, "high": high, "n_texts": 10, **changes}


def numbers(*findings, n_train=4_000):
    return {"findings": [*findings], "models": [{**MODEL, "n_train": n_train}]}


def claim_about(claims, words):
    (claim,) = [claim for claim in claims if all(word in claim.what for word in words)]
    return claim


@pytest.mark.parametrize(("values", "verdict"), [((0.40, 0.43), "agrees"), ((0.30, 0.35), "differs")])
def test_a_tau_agrees_within_five_hundredths_of_the_mean_of_the_seeds(values, verdict):
    rows = [finding("agreement", "attention–gradient", value, seed=seed) for seed, value in enumerate(values)]
    rows.append(finding("agreement", "attention–gradient", 0.9, word_scale=1.0))
    claim = claim_about(debate_claims(numbers(*rows)), ["AG News", "bilstm", "attention–gradient"])
    assert claim.published == "0.389"
    assert claim.verdict == verdict
    assert claim.ours.startswith(f"{sum(values) / 2:.3f}")
    if verdict == "differs":
        assert "0.30 at 0.1, 0.90 at 1 " in claim.why
        assert "from 0.30 to 0.35" in claim.why
        assert "60,000 texts, we on 4,000" in claim.why


def test_the_number_of_texts_is_a_cause_only_where_it_is_much_smaller():
    rows = [finding("agreement", "attention–gradient", 0.1)]
    claim = claim_about(debate_claims(numbers(*rows, n_train=59_000)), ["AG News", "bilstm", "attention–gradient"])
    assert "60,000" not in claim.why


def test_what_was_not_trained_is_not_measured():
    claims = debate_claims(numbers())
    assert {claim.verdict for claim in claims} == {"not measured"}
    assert len(claims) == 12


@pytest.mark.parametrize(
    ("mass", "lost", "verdict"), [(0.004, 0.01, "agrees"), (0.02, 0.01, "differs"), (0.004, 0.03, "differs")]
)
def test_deceived_attention_needs_little_attention_and_little_loss(mass, lost, verdict):
    rows = [finding("deceived", "mass", mass, 0.0, 0.1), finding("deceived", "lost", lost, -0.01, 0.05)]
    claim = claim_about(debate_claims(numbers(*rows)), ["trained away"])
    assert claim.verdict == verdict


def test_uniform_attention_agrees_if_the_published_loss_is_in_our_interval():
    def rows(high):
        own = [finding("uniform-and-frozen", "lost with uniform", 0.01, 0.0, high, corpus="imdb")]
        for name in ("learned", "uniform", "frozen"):
            own.append(finding("uniform-and-frozen", name, 0.9, 0.88, 0.92, corpus="imdb"))
            own.append(finding("uniform-and-frozen", f"{name} over seeds", 0.9, 0.89, 0.91, corpus="imdb"))
        return own

    words = ["IMDB", "lost with uniform"]
    assert claim_about(debate_claims(numbers(*rows(0.03))), words).verdict == "agrees"
    assert claim_about(debate_claims(numbers(*rows(0.015))), words).verdict == "differs"
    claim = claim_about(debate_claims(numbers(*rows(0.03))), ["IMDB", "frozen"])
    assert (claim.ours, claim.verdict) == ("0.900 [0.880, 0.920]", "new")
    assert "0.900 [0.890, 0.910]" in claim.why


def test_rows_are_chosen_by_their_cells():
    rows = [finding("agreement", "attention–gradient", 0.3), finding("agreement", "attention–gradient", 0.4, seed=1)]
    assert chosen(rows, seed=1) == rows[1:]
    assert taus(numbers(*rows), "ag-news", "bilstm", "attention–gradient") == rows
    assert taus(numbers(*rows), "imdb", "bilstm", "attention–gradient") == []
    assert quantity(rows[0]).low != quantity(rows[0]).low
