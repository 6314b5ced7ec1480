from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.features.autoencoder import kinds, smallest_kept
from heedful.features.autoencoder.topk import RowTopK
from heedful.features.card import Card
from heedful.features.dictionary import dictionary_of
from tests.features.autoencoder.examples import (
    D_E,
    EVERY,
    EXAMPLES,
    N_ROWS,
    WIDTH,
    active_of,
    loss_of,
    pre_of,
    rebuilt,
    rows,
    weights_of,
)


def folded(kind, weights, x, scale=1.0):
    """The dictionary with thresholds just below the smallest activations of these rows."""
    smallest = smallest_kept(kind, weights, [x]) * (1 - 1e-6)
    return dictionary_of(kind, weights, smallest, scale, Card(kind.name))


def code_of(kind, x, weights, share=1.0):
    return kind.encode(x, weights, kind.directions(weights), share)


def grown(kind, weights):
    """The weights, of which the optimiser can change those that it changes."""
    for weight in weights.parameters.values():
        weight.requires_grad_(True)
    return weights


def test_the_catalogue_is_every_kind_under_its_file_s_name():
    assert sorted(kinds()) == ["batchtopk", "jumprelu", "matryoshka", "relu", "topk"]
    assert {type(kind) for kind in EXAMPLES.values()} == set(kinds().values())


@pytest.mark.parametrize("name", EVERY)
def test_a_code_is_what_its_definition_says(name):
    kind, x = EVERY[name], rows()
    weights = weights_of(kind)
    code = code_of(kind, x, weights)
    active = active_of(kind, x, weights)
    assert code.active.shape == (N_ROWS, WIDTH)
    assert code.reconstruction.shape == (N_ROWS, D_E)
    assert float(code.active.min()) == 0
    np.testing.assert_allclose(code.active.numpy(), active, atol=1e-12)
    np.testing.assert_allclose(code.reconstruction.numpy(), rebuilt(active, weights), atol=1e-12)
    if "matryoshka" not in name:
        np.testing.assert_allclose(code.pre.numpy(), pre_of(kind, x, weights), atol=1e-12)


@pytest.mark.parametrize("share", [0.01, 1.0])
@pytest.mark.parametrize("name", EVERY)
def test_a_loss_is_what_its_definition_says(name, share):
    kind, x = EVERY[name], rows()
    weights = weights_of(kind)
    loss, _ = kind.loss(x, weights, share)
    assert float(loss) == pytest.approx(loss_of(kind, x, weights_of(kind), share), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in EVERY if "jumprelu" not in name])
def test_gradients_are_those_of_finite_differences(name):
    # A JumpReLU's are estimates. Of inner widths that are detached only the narrowest learns from its own error.
    kind, x = EVERY[name], rows()
    if "matryoshka" in name:
        kind = replace(kind, inner="joint")
    weights = grown(kind, weights_of(kind))
    kind.loss(x, weights, 1.0)[0].backward()
    rng = np.random.default_rng(0)
    for weight in weights.parameters.values():
        move = torch.from_numpy(rng.normal(size=weight.shape))
        slope = float((weight.grad * move).sum())
        with torch.no_grad():
            ends = []
            for step in (1e-6, -1e-6):
                weight.add_(step * move)
                # Lengths that are kept at 1 are kept by the step itself.
                ends.append(float(kind.loss(x, fresh(weights), 1.0)[0]))
                weight.sub_(step * move)
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)


def fresh(weights):
    """The same weights, of which nothing was tracked yet."""
    return replace(weights, tracked={name: torch.zeros_like(value) for name, value in weights.tracked.items()})


@pytest.mark.parametrize("scale", [1.0, 3.7])
@pytest.mark.parametrize("name", EVERY)
def test_the_dictionary_computes_what_the_training_code_computes(name, scale):
    kind, x = EVERY[name], rows()
    weights = weights_of(kind)
    code = code_of(kind, x, weights)
    dictionary = folded(kind, weights, x, scale)
    active = dictionary.encode(scale * x)
    torch.testing.assert_close(active, scale * code.active, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(dictionary.decode(active), scale * code.reconstruction, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(dictionary.W_dec.norm(dim=1), torch.ones(WIDTH).double())


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith(("batchtopk", "matryoshka"))])
def test_the_smallest_activation_of_every_pass_is_kept(name):
    kind, x = EVERY[name], rows()
    weights, least = weights_of(kind), []
    for number in range(getattr(kind, "passes", 0) + 1):
        stopped = replace(kind, passes=number) if kind.name == "matryoshka" else kind
        active = active_of(stopped, x, weights)
        least.append(active[active > 0].min())
    assert smallest_kept(kind, weights, [x]).tolist() == pytest.approx(least)


def test_a_kind_that_chooses_row_by_row_keeps_no_smallest_activation():
    for name in ("relu-unit", "topk-unit", "jumprelu-unit"):
        assert smallest_kept(EVERY[name], weights_of(EVERY[name]), [rows()]).shape == (0,)


@pytest.mark.parametrize("name", EVERY)
def test_every_row_is_encoded_by_itself(name):
    kind, x = EVERY[name], rows(1024).float()
    weights = weights_of(kind)
    dictionary = folded(kind, weights, rows())
    whole = dictionary.encode(x)
    for size in (1, 64):
        torch.testing.assert_close(torch.cat([dictionary.encode(part) for part in x.split(size)]), whole)
    assert torch.equal(dictionary.encode(x[None, :5, None])[0, :, 0] > 0, whole[:5] > 0)


@pytest.mark.parametrize("name", EVERY)
def test_quiet_counts_rows_since_a_feature_was_active(name):
    kind, x = EVERY[name], rows()
    weights = weights_of(kind)
    weights.quiet.fill_(100)
    with torch.no_grad():
        weights.b_enc[4] = -1e6
    _, code = kind.loss(x, weights, 1.0)
    assert weights.quiet[4] == 100 + N_ROWS
    assert torch.equal(weights.quiet == 0, (code.active > 0).any(dim=0))


@pytest.mark.parametrize("name", EVERY)
def test_dead_features_learn_what_the_others_leave(name):
    kind, x = EVERY[name], rows()
    dead, alive = torch.tensor([4, 11]), torch.tensor([j for j in range(WIDTH) if j not in (4, 11)])
    gradients = []
    for revive in (0.0, 2.0):
        weights = grown(kind, weights_of(kind))
        with torch.no_grad():
            weights.b_enc[dead] = -9.0
        loss, code = replace(kind, revive=revive).loss(x, weights, 1.0, dead)
        assert not bool((code.active[:, dead] > 0).any())
        loss.backward()
        gradients.append((loss.item(), weights.W_enc.grad, weights.W_dec.grad))
    (without, W_enc, W_dec), (revived, *moved) = gradients
    left, active = x.numpy() - rebuilt(active_of(kind, x, weights), weights), np.zeros((N_ROWS, WIDTH))
    if "matryoshka" in name:
        active[:, dead] = code.pre.detach().numpy()[:, dead]
    else:
        active[:, dead] = pre_of(kind, x, weights)[:, dead]
    error = ((rebuilt(active, weights) - weights.b_dec.detach().numpy() - left) ** 2).sum(axis=1).mean()
    assert revived == pytest.approx(without + 2.0 * 2 / (D_E // 2) * error, rel=1e-9)
    for before, after in zip((W_enc, W_dec), moved, strict=True):
        assert bool((after[dead] != 0).any(dim=1).all())
        if "matryoshka" not in name:
            torch.testing.assert_close(before[alive], after[alive])


@pytest.mark.parametrize("norms", ["unit", "free"])
def test_of_many_dead_features_the_strongest_of_each_row_learn(norms):
    kind, x, dead = RowTopK(k=3, norms=norms), rows(), [1, 4, 7, 11, 13]
    weights = weights_of(kind)
    weights.b_enc[dead] = -9.0
    without = float(replace(kind, revive=0.0).loss(x, weights, 1.0)[0])
    revived = float(kind.loss(x, weights, 1.0, torch.tensor(dead))[0])
    pre, left = pre_of(kind, x, weights), x.numpy() - rebuilt(active_of(kind, x, weights), weights)
    active = np.zeros_like(pre)
    for row, own in zip(active, pre, strict=True):
        strongest = sorted(dead, key=lambda j: -own[j])[: D_E // 2]
        row[strongest] = own[strongest]
    error = ((rebuilt(active, weights) - weights.b_dec.numpy() - left) ** 2).sum(axis=1).mean()
    assert revived == pytest.approx(without + error, rel=1e-9)


def settled(kind, settings):
    """The kind with these settings; a number has the type of its field."""
    types = {name: field.type for name, field in type(kind).__dataclass_fields__.items()}
    return replace(kind, **{name: int(value) if types[name] is int else value for name, value in settings.items()})


REFUSED = [
    ({"k": 0.0}, ("topk", "batchtopk", "jumprelu", "matryoshka"), "k must be above 0 and at most the width, 20; 0 was"),
    ({"k": 21.0}, ("topk", "batchtopk", "jumprelu", "matryoshka"), "at most the width, 20; 21 was given"),
    ({"sparsity": -1.0}, ("relu", "jumprelu"), "sparsity"),
    ({"sparsity": float("nan")}, ("relu", "jumprelu"), "sparsity"),
    ({"ramp": 1.5}, ("relu", "jumprelu"), "ramp"),
    ({"bandwidth": 0.0}, ("jumprelu",), "a bandwidth above 0"),
    ({"first_threshold": -0.1}, ("jumprelu",), "first_threshold of at least 0"),
    ({"passes": 11}, ("matryoshka",), "0 to 10 passes"),
    ({"first_k": 0.5}, ("matryoshka",), "first_k of at least 1"),
    ({"widths": "10,5"}, ("matryoshka",), "rising numbers below 20, such as '64,256'; '10,5' was given"),
    ({"widths": "wide"}, ("matryoshka",), "rising numbers"),
    ({"widths": "5,30"}, ("matryoshka",), "rising numbers"),
]


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [(name, settings, sentence) for settings, names, sentence in REFUSED for name in names],
)
def test_settings_that_do_not_fit_are_refused(name, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        settled(EXAMPLES[name], settings).check(WIDTH)


def test_settings_that_fit_are_accepted():
    for kind in EVERY.values():
        kind.check(WIDTH)
