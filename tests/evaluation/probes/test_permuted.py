import numpy as np
import pytest

from heedful.errors import BadInput
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.evaluation.probes.permuted import Permuted
from heedful.models.attention_edits import uniform
from tests.evaluation.probes.models import (
    TEXTS,
    distribution,
    divergence,
    inquiry_of,
    logits_under,
    model_of,
    own_attention,
)

KINDS = ["single-layer", "classic", "bert", "single-logit"]


def by_hand(model, inquiry, n):
    rows = []
    for index, document in enumerate(inquiry.documents):
        alpha, is_word = own_attention(model, document)
        own, rng = distribution(model.logits([document])[0]), inquiry.rng(index)
        weights = []
        for order in [rng.permutation(int(is_word.sum())) for _ in range(n)]:
            weights.append(alpha.copy())
            weights[-1][:, is_word] = alpha[:, is_word][:, order]
        weights.append(alpha.copy())
        weights[-1][:, is_word] = alpha[:, is_word].mean(axis=1, keepdims=True)
        p = np.stack([distribution(logits_under(model, document, one)) for one in weights])
        change, flips = np.abs(p - own).sum(axis=1) / 2, p.argmax(axis=1) != own.argmax()
        shares = [one[:, is_word] / one[:, is_word].sum(axis=1, keepdims=True) for one in (alpha, *weights)]
        moved = [divergence(one, shares[0]).mean() for one in shares[1:]]
        far = divergence(p, own)
        row = [np.median(change[:-1]), change[-1], flips[:-1].mean(), flips[-1]]
        rows.append([*row, far[:-1].mean(), far[-1], np.mean(moved[:-1]), moved[-1]])
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_attention_edited_by_hand(kind):
    model = model_of(kind)
    inquiry = inquiry_of(model, TEXTS[:3])
    result = Permuted(n_permutations=5).measure(inquiry)
    measured = {finding.what: finding.value.value for finding in result.findings if "every layer" not in finding.what}
    assert [*measured.values()] == pytest.approx(by_hand(model, inquiry, 5), abs=1e-7)
    assert sum("every layer" in finding.what for finding in result.findings) == (2 if kind in KINDS[2:] else 0)


def test_attention_is_made_equal_in_every_layer():
    model = model_of("bert")
    inquiry = inquiry_of(model, TEXTS[:2])
    change = []
    for document in inquiry.documents:
        p = [distribution(logits[0]) for logits in (model.edited([document], uniform), model.logits([document]))]
        change.append(np.abs(p[0] - p[1]).sum() / 2)
    (found,) = [
        finding.value.value
        for finding in Permuted(n_permutations=1).measure(inquiry).findings
        if "every layer" in finding.what and "total variation" in finding.what
    ]
    assert found == pytest.approx(np.mean(change))


def test_an_answer_follows_from_the_interval_of_the_change():
    strong, weak = (
        inquiry_of(model_of("classic", strength=30.0), TEXTS * 4),
        inquiry_of(model_of("classic", strength=0.1)),
    )
    assert Permuted(tolerance=1e-4).measure(strong).answer == "yes"
    assert Permuted().measure(weak).answer == "no"


def test_one_word_cannot_be_shuffled_and_bad_settings_are_refused():
    result = Permuted().measure(inquiry_of(model_of("classic"), ["good", "film"]))
    assert result.answer == "unknown"
    assert "No text has two words" in result.why
    for settings in ({"n_permutations": 0}, {"tolerance": 0.0}, {"tolerance": 1.0}):
        with pytest.raises(BadInput, match="permuted"):
            Permuted(**settings)


def test_a_last_layer_that_hardly_matters_among_layers_that_do_is_an_answer_in_part(monkeypatch):
    spread = np.linspace(-1e-3, 1e-3, 30)

    def answer_to(**means):
        columns = {name.replace("_", " "): mean + spread for name, mean in means.items()}
        monkeypatch.setattr(Inquiry, "over_texts", lambda *_: columns)
        return Permuted().measure(inquiry_of(model_of("classic"))).answer

    assert answer_to(permuted=0.01, uniform=0.01, all_layers=0.4) == "partly"
    assert answer_to(permuted=0.01, uniform=0.01, all_layers=0.01) == "no"
    assert answer_to(permuted=0.3, uniform=0.01, all_layers=0.01) == "yes"
    assert answer_to(permuted=0.01, uniform=0.4) == "no"
