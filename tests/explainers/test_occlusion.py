import numpy as np
import pytest
import torch
from captum.attr import Occlusion

import heedful
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.models.budget import Budget
from heedful.models.question import ask
from heedful.target import Target
from tests.families import build, pictures
from tests.straightforward import Straightforward

TEXT = "good film was very dull but bright ."


@pytest.mark.parametrize(("absence", "hole"), [("replace", ["neverseen"]), ("delete", [])])
@pytest.mark.parametrize(("width", "stride"), [(1, 1), (3, 1), (3, 2), (4, 4), (5, 3), (20, 7)])
def test_a_unit_has_the_mean_of_its_windows_losses_a_unit(tiny, width, stride, absence, hole):
    words, plain = TEXT.split(), Straightforward(tiny)
    d = len(words)
    shares = [[] for _ in words]
    for start in range(0, d, stride):
        inside = range(start, min(start + width, d))
        left = [piece for j, word in enumerate(words) for piece in (hole if j in inside else [word])]
        loss = (plain.predict([TEXT]) - plain.predict([" ".join(left)]))[0, 1]
        for j in inside:
            shares[j].append(loss / len(inside))
        if start + width >= d:
            break
    explanation = heedful.explain(tiny, TEXT, "occlusion", target=1, width=width, stride=stride, absence=absence)
    assert np.allclose(explanation.scores, [np.mean(share) for share in shares], atol=1e-12)
    assert (explanation.error == 0).all()


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit"])
def test_a_window_of_one_is_leave_one_out_to_the_byte(family):
    text = pictures()[0] if family == "vit" else "the film was good ."
    one, other = (
        heedful.explain(build(family), text, method, **settings)
        for method, settings in (("occlusion", {"width": 1}), ("leave-one-out", {}))
    )
    assert one.scores.tobytes() == other.scores.tobytes()
    assert one.facts["masks"] == other.facts["masks"]


def test_a_text_is_occluded_as_captum_does(tiny):
    document, target = tiny.encode(TEXT), Target(1, "positive")

    def f(masks):
        keep = np.concatenate([np.ones((len(masks), 1)), masks.numpy()], axis=1) > 0.5
        return torch.from_numpy(tiny.masked(document, target, keep, "replace"))

    for width, stride in ((3, 1), (2, 2), (4, 2)):
        theirs = Occlusion(f).attribute(torch.ones(1, 8), (width,), strides=(stride,))[0].numpy()
        ours = heedful.explain(tiny, TEXT, "occlusion", target=1, width=width, stride=stride).scores
        assert np.allclose(width * ours, theirs, atol=1e-6)


def test_a_picture_is_occluded_in_squares_as_captum_does():
    model, picture = build("vit"), pictures()[1]
    document, target = model.encode(picture), Target(2, "neutral")
    special = document.words < 0

    def f(masks):
        keep = np.ones((len(masks), len(special)), dtype=bool)
        keep[:, ~special] = masks.numpy().reshape(len(masks), -1) > 0.5
        return torch.from_numpy(model.masked(document, target, keep, "replace"))

    theirs = Occlusion(f).attribute(torch.ones(1, 4, 4), (2, 2), strides=(1, 1), perturbations_per_eval=1)[0].numpy()
    ours = heedful.explain(model, picture, "occlusion", target=2, width=2)
    assert ours.facts["windows"] == 9
    assert np.allclose(4 * ours.scores.reshape(4, 4), theirs, atol=1e-6)


def test_windows_side_by_side_share_out_their_losses(tiny):
    whole = heedful.explain(tiny, TEXT, "occlusion", target=1, width=3, stride=3)
    texts = ["x x x very dull but bright .", "good film was x x x bright .", "good film was very dull but x x"]
    assert whole.scores.sum() == pytest.approx(sum(tiny([TEXT])[0, 1] - tiny(texts)[:, 1]), abs=1e-12)


@pytest.mark.parametrize(("width", "stride"), [(0, 0), (3, 0), (2, 3), (-1, 1)])
def test_windows_that_leave_units_out_are_refused(tiny, width, stride):
    with pytest.raises(BadInput, match="1 ≤ stride ≤ width"):
        heedful.explain(tiny, TEXT, "occlusion", width=width, stride=stride)


def test_a_stopped_run_gives_no_partial_explanation(tiny):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_explainer(configure("occlusion", {}), ask(tiny, [TEXT], budget=Budget(watch=stop)))
