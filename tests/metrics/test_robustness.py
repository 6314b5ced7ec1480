import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.metrics import measure
from heedful.metrics.robustness import Continuity, Lipschitz
from heedful.models.altered import Movable
from heedful.perturb.masks import generator
from tests.families import build, texts_for
from tests.metrics.linear import Truth, evaluations, linear, texts
from tests.metrics.masked_text import evaluation_by


def unit(scores):
    return scores / np.sqrt((scores**2).sum())


def linear_parts(text):
    """The vectors of the text's words, in the order of their numbers, and what makes them scores."""
    model = linear()
    document = model.encode(text)
    table, head = (weight.detach().numpy() for weight in (model.network.table.weight, model.network.head.weight))
    return document, np.sort(document.ids), table, head[1]


def test_lipschitz_is_the_change_of_the_explanation_over_that_of_the_vectors():
    document, numbers, table, head = linear_parts(texts()[0])
    vectors, rng = table[numbers], generator(7, document)
    shift = rng.standard_normal(vectors.shape)
    shift *= (1 - rng.random()) * 0.2 * np.sqrt((vectors**2).sum()) / np.sqrt((shift**2).sum())
    before = (table[document.ids] - table[0]) @ head
    table[numbers] += shift
    after = (table[document.ids] - table[0]) @ head
    # Alvarez-Melis & Jaakkola, 2018: ‖φ(x) − φ(x′)‖ / ‖x − x′‖.
    expected = np.sqrt(((before - after) ** 2).sum()) / np.sqrt((shift**2).sum())
    metric = Lipschitz(radius=0.2, n_steps=1, seed=7, lengths="absolute")
    assert measure(metric, evaluations(Truth())[0]) == pytest.approx(expected, rel=1e-9)
    relative = np.sqrt((shift**2).sum()) / np.sqrt((vectors**2).sum())
    expected = np.sqrt(((unit(before) - unit(after)) ** 2).sum()) / relative
    metric = Lipschitz(radius=0.2, n_steps=1, seed=7)
    assert measure(metric, evaluations(Truth())[0]) == pytest.approx(expected, rel=1e-9)


def test_continuity_is_the_change_of_the_explanation_at_one_distance():
    document, numbers, table, head = linear_parts(texts()[0])
    vectors = table[numbers]
    shift = generator(7, document).standard_normal(vectors.shape)
    shift *= 0.2 * np.sqrt((vectors**2).sum()) / np.sqrt((shift**2).sum())
    before = (table[document.ids] - table[0]) @ head
    table[numbers] += shift
    after = (table[document.ids] - table[0]) @ head
    found = measure(Continuity(radius=0.2, n_neighbours=1, seed=7), evaluations(Truth())[0])
    assert found == pytest.approx(np.sqrt(((unit(before) - unit(after)) ** 2).sum()), rel=1e-9)


def test_neighbours_fill_the_ball(monkeypatch):
    """The source takes the maximum over the ball, not over its surface."""
    lengths = []
    moved = Movable.moved

    def watched(self, document, shift):
        lengths.append(np.linalg.norm(shift) / np.linalg.norm(self.rows(document)[1]))
        return moved(self, document, shift)

    monkeypatch.setattr(Movable, "moved", watched)
    measure(Lipschitz(n_steps=60), evaluations(Truth())[0])
    assert max(lengths) <= 0.1 + 1e-12
    drawn = lengths[:30]
    assert [sum(low < 20 * length <= low + 1 for length in drawn) > 3 for low in (0, 1)] == [True, True]


@pytest.mark.slow
def test_the_ascent_climbs_and_stays_below_what_is_possible():
    """The best of 40 steps lies higher than the best of 40 draws."""
    climbed, drawn = [], []
    for text, evaluation in zip(texts()[:6], evaluations(Truth()), strict=False):
        climbed.append(measure(Lipschitz(n_steps=40), evaluation))
        near = [Continuity(radius=0.1, n_neighbours=1, seed=seed) for seed in range(40)]
        drawn.append(max(measure(metric, evaluation) for metric in near) / 0.1)
        # No step of that length moves scores by more than all of it along the head, and directions by twice that.
        document, numbers, table, head = linear_parts(text)
        scores = (table[document.ids] - table[0]) @ head
        assert climbed[-1] <= 2 * np.linalg.norm(table[numbers]) * np.linalg.norm(head) / np.linalg.norm(scores)
    assert np.mean(climbed) > 1.05 * np.mean(drawn)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "transformer", "torch", "single-layer"])
@pytest.mark.parametrize("method", ["leave-one-out", "gradient-l2"])
def test_models_of_every_family_can_be_moved_and_stay_where_they_are(family, method, tiny):
    model = tiny if family == "single-layer" else build(family)
    text = texts_for(family)[1]
    evaluation = evaluation_by(model, method, text)
    before = {name: weight.clone() for name, weight in model.network.state_dict().items()}
    near, far = measure(Continuity(), evaluation), measure(Continuity(radius=0.5), evaluation)
    assert 0 < near < far <= 2
    assert measure(Lipschitz(), evaluation) > 0
    assert all((weight == before[name]).all() for name, weight in model.network.state_dict().items())
    again = heedful.explain(model, text, method)
    assert again.scores.tobytes() == evaluation.scores.tobytes()


def test_the_copy_is_made_once_for_all_evaluations_of_a_model():
    first, second = evaluations(Truth())[:2]
    measure(Lipschitz(), first)
    kept = first.altered_models["movable"]
    measure(Continuity(), second)
    assert isinstance(kept, Movable)
    assert second.altered_models["movable"] is kept


def test_every_neighbour_has_a_seed_of_its_own():
    evaluation = evaluation_by(linear(), "random", texts()[0])
    runs = [unit(heedful.explain(linear(), texts()[0], "random", seed=seed).scores) for seed in range(4)]
    expected = np.mean([np.linalg.norm(runs[0] - runs[seed]) for seed in (1, 2, 3)])
    assert measure(Continuity(n_neighbours=3), evaluation) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", [Lipschitz(), Continuity()])
def test_pictures_and_functions_have_no_vectors_to_move(metric):
    with pytest.raises(Unsupported, match="an image has no word vectors"):
        measure(metric, evaluation_by(build("vit"), "random", texts_for("vit")[0]))
    with pytest.raises(Unsupported, match="needs gradients"):
        measure(metric, evaluation_by(heedful.wrap(lambda given: [[len(text)] for text in given]), "random", "a film"))


@pytest.mark.parametrize(
    "metric", [Lipschitz(radius=0.0), Lipschitz(n_steps=0), Continuity(radius=-1.0), Continuity(n_neighbours=0)]
)
def test_no_neighbours_are_refused(metric):
    with pytest.raises(BadInput, match="radius > 0 and at least 1 neighbour"):
        measure(metric, evaluations(Truth())[0])
