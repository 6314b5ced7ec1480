import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.evaluation.probes.last_attention import last_attention
from heedful.evaluation.probes.sign_and_value import SignAndValue
from tests.evaluation.probes.models import TEXTS, inquiry_of, model_of, sharp

KINDS = ("for", "against", "killed", "cancelled")


def parts_of(model, document):
    """Each head's part in the margin over the runner-up, word by word, with its share of the bias; and attention."""
    logits = model.logits([document])[0]
    first, second = np.argsort(-logits)[:2]
    net, n = model.network, len(document.ids)
    with torch.no_grad():
        e = model.embed([document])
        if "W_c" in dict(net.named_children()):
            h, _ = net.first(e, torch.tensor([n]))
            f = net.W_c(h[0])[None]
        else:
            values = torch.einsum("td,hod->hto", e[0], net.W_v) + net.b_v[:, None]
            f = torch.einsum("hto,hco->htc", values, net.W_l) / net.config.n_heads
    alpha = model.attention([document])[0, 0]
    margin = (f[..., first] - f[..., second]).numpy()
    words = np.flatnonzero(document.words >= 0)
    return margin[:, words], alpha[:, words]


def shares_by_hand(model, document, strongest):
    margin, alpha = parts_of(model, document)
    part = alpha * margin
    kinds = []
    for word in range(part.shape[1]):
        total, size = part[:, word].sum(), np.abs(part[:, word]).sum()
        if size <= 0.1 * alpha[:, word].sum() * np.abs(margin).mean():
            kinds.append("killed")
        elif abs(total) <= 0.1 * size:
            kinds.append("cancelled")
        else:
            kinds.append("for" if total > 0 else "against")
    top = np.argsort(-alpha.sum(axis=0), kind="stable")[:strongest]
    return [np.mean([kinds[word] == kind for word in top]) for kind in KINDS], [
        np.mean([kind == own for own in kinds]) for kind in KINDS
    ]


@pytest.mark.parametrize("strongest", [2, 5])
@pytest.mark.parametrize("kind", ["single-layer", "classic"])
def test_words_are_sorted_as_attention_times_value_does_it_by_hand(kind, strongest):
    model = model_of(kind, n_classes=3)
    inquiry = inquiry_of(model)
    rows = np.mean([shares_by_hand(model, document, strongest) for document in inquiry.documents], axis=0)
    findings = SignAndValue(strongest=strongest).measure(inquiry).findings
    assert [finding.value.value for finding in findings] == pytest.approx(rows[0])
    assert [finding.null.value for finding in findings] == pytest.approx(rows[1])
    assert rows[0, 1] > 0


@pytest.mark.parametrize("bias", [-3.0, 3.0])
def test_a_bias_of_the_output_is_no_evidence_of_a_word(bias):
    model = sharp()
    weights = model.network.W_c.weight.detach().clone()
    with torch.no_grad():
        model.network.W_c.weight *= 1e-3
        model.network.W_c.bias.copy_(torch.tensor([0.0, bias]))
    (one, other), side = weights, 1 if bias > 0 else -1
    last = last_attention(model, model.encode(TEXTS[0]))
    h = model.network.first(model.embed([last.document]), torch.tensor([len(last.document.ids)]))[0][0]
    sides = torch.sign(side * h @ (other - one)).detach().numpy()[last.is_word]
    (row,) = [SignAndValue(strongest=100).measure(inquiry_of(model, TEXTS[:1]))]
    shares = [finding.value.value for finding in row.findings[:2]]
    assert 0 < shares[0] <= (sides > 0).mean()
    assert shares[1] <= (sides < 0).mean()


def test_slopes_of_deeper_models_count_for_the_predicted_class():
    model = model_of("bert")
    last = last_attention(model, model.encode(TEXTS[1]))
    part = (last.alpha * (last.slopes[0] - last.slopes[1])).sum(axis=0)[last.is_word]
    shares = {
        finding.what: finding.value.value
        for finding in SignAndValue(strongest=100).measure(inquiry_of(model, TEXTS[1:2])).findings
    }
    assert shares["Share of the 100 words with most attention that are for the decision"] <= (part > 0).mean()
    assert shares["Share of the 100 words with most attention that are against the decision"] <= (part < 0).mean()
    assert sum(shares.values()) == pytest.approx(1)


def test_one_word_and_bad_settings():
    assert SignAndValue().measure(inquiry_of(sharp(), ["good", "film"])).findings == ()
    with pytest.raises(BadInput, match="strongest"):
        SignAndValue(strongest=0)
