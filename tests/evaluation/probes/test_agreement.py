import numpy as np
import pytest
import torch
from scipy import stats

from heedful.errors import BadInput
from heedful.evaluation.probes import agreement
from heedful.evaluation.probes.agreement import Agreement
from tests.evaluation.probes.models import TEXTS, distribution, inquiry_of, model_of

LONG = [text for text in TEXTS if len(text.split()) > 2]


def per_word(document, values):
    return np.array([np.abs(values[document.words == word].sum()) for word in range(document.words.max() + 1)])


def by_hand(model, document):
    """Jain & Wallace's three rankings of the words: attention, |∇p · x|, and the change of p when a word is deleted."""
    logits = model.logits([document])[0]
    target = 0 if len(logits) == 1 else int(logits.argmax())
    n = len(document.ids)
    e = model.embed([document]).detach().requires_grad_()
    out = model.forward(e, [document])[0]
    p = torch.sigmoid(out[0]) if len(logits) == 1 else torch.softmax(out, -1)[target]
    (gradient,) = torch.autograd.grad(p, e)
    slopes = per_word(document, (gradient * e).sum(-1)[0].detach().numpy()[:n])
    attention = per_word(document, model.attention([document])[0].mean(axis=(0, 1))[:n])
    words = document.text.split()
    shorter = [" ".join(words[:place] + words[place + 1 :]) for place in range(len(words))]
    rows = np.stack([distribution(row) for row in (logits, *(model([text])[0] for text in shorter))])
    return attention, slopes, np.abs(rows[1:] - rows[0]).sum(axis=1) / 2


def without_rounding(scores):
    """The places of the scores in order; a step of at most 1e-6 of the largest score is none."""
    order = np.argsort(scores)
    ascending = np.asarray(scores)[order]
    places = np.empty(len(order))
    places[order] = np.cumsum(np.diff(ascending, prepend=ascending[0]) > 1e-6 * np.abs(ascending).max())
    return places


@pytest.mark.parametrize("kind", ["classic", "single-layer", "bert", "single-logit"])
def test_correlations_are_those_of_jain_and_wallace_by_hand(kind):
    model = model_of(kind, n_classes=2) if kind in ("classic", "single-layer") else model_of(kind)
    inquiry = inquiry_of(model, LONG[:3])
    expected = {"attention–gradient": [], "attention–deletion": [], "gradient–deletion": []}
    spearmans = []
    for document in inquiry.documents:
        attention, slopes, deleted = by_hand(model, document)
        if len(model.classes) > 2:
            # The probability of the predicted class alone is explained.
            target = model.logits([document])[0].argmax()
            words = document.text.split()
            shorter = [" ".join(words[:n] + words[n + 1 :]) for n in range(len(words))]
            p = [distribution(model([text])[0])[target] for text in (document.text, *shorter)]
            deleted = np.abs(np.array(p[1:]) - p[0])
        pairs = {"attention–gradient": (attention, slopes), "attention–deletion": (attention, deleted)}
        pairs["gradient–deletion"] = slopes, deleted
        for name, pair in pairs.items():
            expected[name].append(stats.kendalltau(*map(without_rounding, pair)).statistic)
        spearmans.append(stats.spearmanr(*map(without_rounding, (attention, deleted))).statistic)
    found = {finding.what: finding.value.value for finding in Agreement().measure(inquiry).findings}
    for name, taus in expected.items():
        words = agreement._NAMES[name]
        (tau,) = [value for what, value in found.items() if what.startswith(f"Kendall's τ of {words};")]
        assert tau == pytest.approx(np.mean(taus), abs=1e-6)
    assert found[f"Spearman's ρ of {agreement._NAMES['attention–deletion']}"] == pytest.approx(np.mean(spearmans))


@pytest.mark.parametrize("n", [8, 30])
def test_p_values_are_those_of_scipy(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        test = stats.kendalltau(rng.random(n), rng.random(n), method="asymptotic")
        assert agreement._p_value(test.statistic, n) == pytest.approx(test.pvalue)
    assert np.isnan(agreement._p_value(float("nan"), n))


def test_the_last_layer_is_shown_where_there_are_several():
    shown = [
        {finding.what for finding in Agreement().measure(inquiry_of(model_of(kind), LONG[:2])).findings}
        for kind in ("classic", "transformer")
    ]
    assert [any("last layer" in what for what in names) for names in shown] == [False, True]


def columns_of(tau, gradient, n=40):
    rng = np.random.default_rng(0)
    noise = 0.05 * rng.normal(size=(2, n))
    names = ["attention–replacement", "gradient–replacement"]
    columns = {name: mean + row for name, mean, row in zip(names, (tau, gradient), noise, strict=True)}
    columns |= {f"{name} {extra}": columns[name] for name in names for extra in ("ρ", "p")}
    return columns | {"null": noise[0]}


@pytest.mark.parametrize(
    ("tau", "gradient", "answer"),
    [(0.6, 0.5, "yes"), (0.3, 0.6, "partly"), (0.05, 0.6, "no"), (-0.2, 0.5, "no"), (0.5, 0.505, "yes")],
)
def test_an_answer_follows_from_the_intervals(monkeypatch, tau, gradient, answer):
    inquiry = inquiry_of(model_of("classic"))
    monkeypatch.setattr(type(inquiry), "over_texts", lambda *_: columns_of(tau, gradient))
    assert Agreement().measure(inquiry).answer == answer


def test_short_texts_have_no_ranking_and_bad_settings_are_refused():
    result = Agreement().measure(inquiry_of(model_of("classic"), ["good film", "bad"]))
    assert (result.answer, result.findings) == ("unknown", ())
    assert "at least 3 words" in result.why
    for least in (-0.1, 1.0):
        with pytest.raises(BadInput, match="least"):
            Agreement(least=least)
