"""Change of an explanation when the word vectors move slightly."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, Unsupported
from heedful.explanation import Explanation
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.models.altered import Movable
from heedful.perturb.masks import generator

_NEEDS: frozenset[Offer] = frozenset({"gradients"})
_WANTS: frozenset[Want] = frozenset({"again"})
_NEAREST = 0.01
"""The shortest distance of a neighbour, as a share of the ball's radius: at none, there is no quotient."""
_SOURCE = "Alvarez-Melis & Jaakkola, 2018, arXiv:1806.08049"


@final
class _Neighbourhood:
    """Neighbours of a text: the model with the vectors of the text's words moved.

    x holds the vectors of the distinct words; the ball has the radius `radius` · ‖x‖. Every neighbour is explained with
    its own seed, as another text would be.
    """

    def __init__(self, evaluation: Evaluation, metric: "Lipschitz | Continuity", n_neighbours: int) -> None:
        document = evaluation.explanation.document
        if document.picture is not None:
            raise Unsupported("an image has no word vectors to move.", metric.name, ": ")
        if not 0 < metric.radius < np.inf or n_neighbours < 1:
            raise BadInput(
                f"needs radius > 0 and at least 1 neighbour; {metric.radius}, {n_neighbours} given.",
                metric.name,
            )
        if "movable" not in evaluation.altered_models:
            evaluation.altered_models["movable"] = Movable(evaluation.question.model)
        self.evaluation, self.movable = evaluation, evaluation.altered_models["movable"]
        _, vectors = self.movable.rows(document)
        self.norm = float(np.linalg.norm(vectors))
        self.length = metric.radius * self.norm
        if self.length == 0:
            raise Unsupported("all word vectors of the text are zero.", metric.name, ": ")
        self.shape, self.rng, self.n_explained = vectors.shape, generator(metric.seed, document), 0

    def on_sphere(self) -> Float[np.ndarray, "row d_e"]:
        """A step to a neighbour at the ball's radius, uniform over directions."""
        shift = self.rng.standard_normal(self.shape)
        return shift * (self.length / float(np.linalg.norm(shift)))

    def in_ball(self) -> Float[np.ndarray, "row d_e"]:
        """A step to a neighbour in the ball: all directions and all distances alike."""
        return self.on_sphere() * max(1 - self.rng.random(), _NEAREST)

    def into_ball(self, shift: Float[np.ndarray, "row d_e"]) -> Float[np.ndarray, "row d_e"]:
        """The step, cut at the ball's surface."""
        return shift * min(1.0, self.length / float(np.linalg.norm(shift)))

    def explained(self, shift: Float[np.ndarray, "row d_e"]) -> Explanation:
        """The explanation of a neighbour."""
        self.n_explained += 1
        moved = self.movable.moved(self.evaluation.explanation.document, shift)
        return self.evaluation.rerun_with_seed(self.n_explained, moved)


@final
@dataclass(frozen=True)
class Lipschitz(Metric):
    """Local Lipschitz constant of the explanation, by random ascent near the text.

    max over x′ in a ball around x of ‖φ(x) − φ(x′)‖ / ‖x − x′‖, with x the vectors of the text's words. Half of the
    `n_steps` neighbours are drawn at random, the others near the best so far.

    `lengths="absolute"` is the source's quotient. It depends on the scale of the scores, and the lecture leaves open
    how methods are compared by it. By default φ is scaled to length 1 and ‖x − x′‖ is divided by ‖x‖; `radius` is a
    share of ‖x‖ in both. The ascent uses no gradient, because most methods have none: the value is a lower bound that
    rises with `n_steps`.
    """

    name: ClassVar[str] = "lipschitz"
    question: ClassVar[str] = "Do similar inputs have similar explanations?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = "faithfulness: where the output changes quickly, the explanation must change too."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS

    radius: float = 0.1
    n_steps: int = 4
    seed: int = 0
    lengths: Literal["relative", "absolute"] = "relative"

    def measure(self, evaluation: Evaluation) -> float:
        ball = _Neighbourhood(evaluation, self, self.n_steps)
        best, largest = np.zeros(ball.shape), 0.0
        for step in range(self.n_steps):
            drawn = ball.in_ball()
            shift = drawn if step < (self.n_steps + 1) // 2 else ball.into_ball(best + drawn / 2)
            quotient = self._quotient(evaluation, ball, shift)
            if quotient >= largest:
                best, largest = shift, quotient
        return largest

    def _quotient(self, evaluation: Evaluation, ball: _Neighbourhood, shift: Float[np.ndarray, "row d_e"]) -> float:
        neighbour, distance = ball.explained(shift), float(np.linalg.norm(shift))
        if self.lengths == "absolute":
            return float(np.linalg.norm(evaluation.scores - neighbour.scores)) / distance
        return evaluation.distance(neighbour) / (distance / ball.norm)


@final
@dataclass(frozen=True)
class Continuity(Metric):
    """Change of the explanation when the word vectors move by a tiny amount.

    The mean of ‖φ(x) − φ(x′)‖, with φ scaled to length 1, over `n_neighbours` at the distance `radius` · ‖x‖: near 0 if
    φ is continuous at x. The lecture's chapter 10.1 gives it as a weaker form of the Lipschitz condition.
    """

    name: ClassVar[str] = "continuity"
    question: ClassVar[str] = "Does the explanation jump when the input hardly changes?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = f"{_SOURCE}, its weaker form"
    not_for: ClassVar[str] = "faithfulness: an explanation that never changes is continuous."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    radius: float = 1e-3
    n_neighbours: int = 2
    seed: int = 0

    def measure(self, evaluation: Evaluation) -> float:
        ball = _Neighbourhood(evaluation, self, self.n_neighbours)
        neighbours = (ball.explained(ball.on_sphere()) for _ in range(self.n_neighbours))
        return float(np.mean([evaluation.distance(neighbour) for neighbour in neighbours]))
