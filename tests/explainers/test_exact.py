import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from tests.straightforward import Straightforward
from tests.theorems.test_theorem_5_1 import lime_by_all_subsets
from tests.theory.test_exact import brute_lime, brute_shapley

TEXT = "good film was good but the plot was dull"


def forwards(model, text, unit, label):
    """f on every subset of the units, by forward passes of the replaced texts."""
    document = model.encode(text)
    unit_of = document.unit_of(unit)[1:]
    d = document.n_units(unit)
    z = np.array([[(n >> j) & 1 for j in range(d)] for n in range(2**d)])
    words = np.array(document.pieces[1:])
    texts = [" ".join(np.where(row[unit_of] == 1, words, "neverseen")) for row in z]
    return z, Straightforward(model).predict(texts)[:, label]


@pytest.mark.parametrize("unit", ["word", "type"])
def test_exact_values_are_those_of_all_subsets(tiny, unit):
    z, f = forwards(tiny, TEXT, unit, 1)
    lime, shapley = (heedful.explain(tiny, TEXT, m, target=1, unit=unit) for m in ("lime-exact", "shapley-exact"))
    assert np.allclose(lime.scores, brute_lime(z, f, 25.0, 1.0, 5000), atol=1e-9)
    assert np.allclose(shapley.scores, brute_shapley(z, f), atol=1e-9)


def test_the_limit_is_lime_s_linear_surrogate_over_all_subsets(tiny):
    text = "good film , not dull story !"
    line, _ = lime_by_all_subsets(tiny, text, 1)
    assert np.allclose(heedful.explain(tiny, text, "lime-limit", target=1).scores, line, atol=1e-9)


def test_sampled_lime_scatters_around_the_exact_one(paper):
    text = "this film is a waste of time . the plot makes no sense , but i liked the music ."
    exact = heedful.explain(paper, text, "lime-exact", unit="type")
    runs = [heedful.explain(paper, text, "lime", unit="type", seed=seed) for seed in range(30)]
    mean = np.mean([run.scores for run in runs], axis=0)
    spread = np.std([run.scores for run in runs], axis=0, ddof=1) / 30**0.5
    assert np.abs(mean - exact.scores).max() < 4 * spread.max()
    assert np.mean([np.abs(run.scores - exact.scores) <= run.error for run in runs]) > 0.9
    assert exact.error.max() < 1e-6


def test_shapley_values_of_a_review_sum_to_the_difference(paper):
    text = "a truly wonderful film with a terrible ending , bad actors and good music . " * 15
    empty = paper([" ".join(["neverseen"] * len(text.split()))])[0, 1]
    for tolerance, slack in ((1e-6, 1e-5), (1e-9, 1e-9)):
        explanation = heedful.explain(paper, text, "shapley-exact", target=1, tolerance=tolerance)
        assert explanation.error.max() <= tolerance
        assert explanation.scores.sum() == pytest.approx(explanation.output - empty, abs=slack)
        assert explanation.facts["empty"] == pytest.approx(empty, abs=1e-12)


def test_a_kernel_without_a_defined_surrogate_is_refused(tiny):
    with pytest.raises(BadInput, match="surrogate is not defined"):
        heedful.explain(tiny, "good film was very dull", "lime-exact", kernel_width=0.1, ridge=0.0)


def test_a_short_text_keeps_its_exact_rule_beside_a_long_one(paper):
    words = paper.vocabulary.words[2:202]
    texts = [" ".join(words[:25]), " ".join(words), " ".join(words[:11])]
    for method in ("shapley-exact", "lime-exact"):
        for order in (texts, texts[::-1]):
            for text, explanation in zip(order, heedful.explain(paper, order, method), strict=True):
                alone = heedful.explain(paper, text, method)
                assert np.allclose(explanation.scores, alone.scores, rtol=0, atol=1e-12)
                assert explanation.error[0] == pytest.approx(alone.error[0], abs=1e-12)


def test_one_word_is_too_few_for_a_line(tiny):
    with pytest.raises(BadInput, match="lime-exact needs at least 2 words; the document has 1."):
        heedful.explain(tiny, "good", "lime-exact")


def with_vector(model, text, word_vector, z):
    """f of every mask with removed words given that word vector, their position kept; by forward passes."""
    e = model.embed([model.encode(text)])[0].detach()
    gone = e.clone()
    n_words = z.shape[1]
    gone[1 : n_words + 1] = word_vector + model.network.W_p[1 : n_words + 1]
    kept = torch.from_numpy(np.column_stack([np.ones(len(z)), z, np.ones((len(z), len(e) - n_words - 1))]) == 1)
    with torch.no_grad():
        return model.forward(torch.where(kept[..., None], e, gone), [])[:, 1].numpy()


@pytest.mark.parametrize("absence", ["replace", "replace:plot", "mean", "zero"])
def test_any_replacement_is_that_of_all_subsets(tiny, absence):
    text = "good film was very dull"
    W_e = tiny.network.W_e.detach()
    vector = {"replace": W_e[1], "replace:plot": W_e[tiny.vocabulary.index["plot"]], "mean": W_e[2:].mean(dim=0)}
    z = np.array([[(n >> j) & 1 for j in range(5)] for n in range(32)])
    f = with_vector(tiny, text, vector.get(absence, torch.zeros(10, dtype=torch.float64)), z)
    for method in ("shapley-exact", "shapley-sampled"):
        explanation = heedful.explain(tiny, text, method, target=1, absence=absence)
        assert np.allclose(explanation.scores, brute_shapley(z, f), atol=1e-9)
    assert np.allclose(
        heedful.explain(tiny, text, "lime-exact", target=1, absence=absence).scores,
        brute_lime(z, f, 25.0, 1.0, 5000),
        atol=1e-9,
    )


def test_a_masked_word_takes_no_attention(tiny):
    text = "good film was very dull"
    z = np.array([[(n >> j) & 1 for j in range(5)] for n in range(32)])
    q_k = tiny.network.attention(tiny.embed([tiny.encode(text)])).detach()[0].log().numpy()
    e = tiny.embed([tiny.encode(text)]).detach()
    _, values = tiny.network.rows(tiny.network.query(e)[0])
    constant = torch.einsum("hco,ho->hc", tiny.network.W_l, tiny.network.b_v)[:, 1].detach().numpy()
    w = (values[:, 1] @ e[0].T).detach().numpy() + constant[:, None]
    f = []
    for row in z:
        alpha = np.exp(q_k) * np.concatenate([[1], row, np.ones(q_k.shape[1] - 6)])
        f.append((alpha * w).sum(axis=1) / alpha.sum(axis=1))
    explanation = heedful.explain(tiny, text, "shapley-exact", target=1, absence="mask")
    assert np.allclose(explanation.scores, brute_shapley(z, np.mean(f, axis=1)), atol=1e-9)


def test_a_replacement_equal_to_the_word_leaves_it_nothing(tiny):
    explanation = heedful.explain(tiny, "good film was film", "shapley-exact", target=1, absence="replace:film")
    assert np.abs(explanation.scores[[1, 3]]).max() < 1e-12
    assert np.abs(explanation.scores[[0, 2]]).min() > 1e-6


def test_deleting_is_refused_by_what_keeps_words_in_place(tiny):
    with pytest.raises(Unsupported, match="lime-exact does not support absence 'delete'"):
        heedful.explain(tiny, "good film", "lime-exact", absence="delete")


def test_each_rung_says_how_far_it_is_from_the_exact_limit(tiny):
    text = "good film was very dull but bright"
    limit = heedful.explain(tiny, text, "lime-limit", target=1)
    for method in ("lime-theorem", "lime-integral", "lime-sums"):
        rung = heedful.explain(tiny, text, method, target=1)
        assert rung.facts["distance_to_exact"] == pytest.approx(np.linalg.norm(rung.scores - limit.scores), abs=1e-9)
    assert "distance_to_exact" not in heedful.explain(tiny, "good", "lime-sums", target=1).facts


def test_the_rungs_are_the_paper_s_sums(tiny):
    """Eq. (31) and Lemma D.2's integral by plain loops over the straightforward model's keys and values."""
    text = "good film was very dull"
    plain = Straightforward(tiny)
    e = plain.embedding(torch.tensor(plain.ids(text))) + plain.positions
    gone = plain.embedding(torch.tensor([plain.ids(text)[0]] + [1] * (len(e) - 1))) + plain.positions
    sums, integral = np.zeros(5), np.zeros(5)
    for head in plain.heads:
        q, row = head.query(e[0]), head.last.weight[1]
        g, g_h = (torch.exp(head.key(x) @ q / 6**0.5).detach().numpy() for x in (e, gone))
        w, w_h = ((head.value(x) @ row).detach().numpy() for x in (e, gone))
        x = np.arange(1, 5) / 4
        a = g_h.sum() / g.sum() - 1
        for t in range(5):
            gap = g[t + 1] * w[t + 1] - g_h[t + 1] * w_h[t + 1]
            sums[t] += 3 / 5 * np.sum(x * gap / ((1 - x) * g.sum() + x * g_h.sum())) / 3
            integral[t] += 3 * gap / g.sum() * (a - np.log1p(a)) / a**2 / 3
    assert np.allclose(heedful.explain(tiny, text, "lime-sums", target=1).scores, sums, atol=1e-10)
    assert np.allclose(heedful.explain(tiny, text, "lime-integral", target=1).scores, integral, atol=1e-10)
