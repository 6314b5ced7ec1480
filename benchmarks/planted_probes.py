"""Does each probe of attention tell a planted case from its opposite? Small random models, 100 seeds.

    python -m benchmarks.planted_probes [--seeds 100] [--only erasure,permuted]

Every case is drawn by its seed: words with scores and values, and texts of them. In the planted case attention is
faithful in the sense of the probe, and the right answer is "yes"; in its opposite attention is ignored, and the right
answer is "no". An error is the answer of the other side; "partly" and "unknown" are undecided. Under "unrelated" both
attention and values are drawn without regard to each other, with nearly equal attention or with attention of any
size; for probes that train, the model is untrained and the labels are random. There the columns only count what a
probe claims. The last rows are verdicts, of a model that is faithful in the sense of all probes that do not train, and
of one that is not.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from time import process_time
from typing import NamedTuple

import numpy as np
import torch

from heedful.document import Document, Pair
from heedful.evaluation.probe import probes
from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport
from heedful.evaluation.probes import Answer, Probe
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.models.classic.classifier import Classic
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.fitting.fresh import fresh
from heedful.models.network import Config, Network, weight_shapes
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import CLS, SPECIAL_WORDS, UNK, Vocabulary

ANSWERS: tuple[Answer, ...] = ("yes", "partly", "no", "unknown")
RIGHT: dict[str, Answer] = {"faithful": "yes", "ignored": "no"}
CLASSES = ("no", "yes")
N_TOPICS, N_SHOWN, N_TEXTS, N_TESTED, N_TRAIN = 6, 3, 80, 130, 768


class Kind(NamedTuple):
    """Words of one kind: how often a text has them, their attention score, the size of their value and its side.

    The score is N(mean, deviation²) + slope × size; sizes are uniform between two bounds, at most 1. The side is that
    of the text's class (1), of the other (-1), or either at random (0).
    """

    n: tuple[int, int]
    score: tuple[float, float] = (0.0, 0.3)
    size: tuple[float, float] = (0.0, 0.2)
    side: int = 0
    slope: float = 0.0


class Planted(NamedTuple):
    """A model and its texts with labels; those to train on follow the first n."""

    model: Classic | SingleLayer
    documents: tuple[Document, ...]
    labels: tuple[int, ...]

    def inquiry(self, n_texts: int, seed: int) -> Inquiry:
        """What a probe is given."""
        test, train = slice(n_texts), slice(n_texts, None)
        texts = TrainAndTest(self.documents[train], self.labels[train], self.documents[test], self.labels[test])
        return Inquiry(self.model, self.documents[test], self.labels[test], seed=seed, training=lambda: texts)


KEY, EVERY = Kind((1, 1), (4.0, 0.3), (0.6, 1.0), 1), Kind((6, 12), (0.0, 1.0), (0.9, 1.0), 1)
FILLER = Kind((6, 12))
RECIPES: dict[tuple[str, str], tuple[Kind, ...]] = {
    ("permuted", "faithful"): (KEY, FILLER),
    ("permuted", "ignored"): (EVERY,),
    ("adversarial", "faithful"): (KEY._replace(score=(5.0, 0.3)), FILLER),
    ("adversarial", "ignored"): (EVERY,),
    ("erasure", "faithful"): (KEY, FILLER._replace(size=(0.1, 0.4), side=-1)),
    ("erasure", "ignored"): (
        Kind((1, 1), (2.0, 0.3), (0.0, 0.05)),
        Kind((6, 9), size=(0.5, 1.0), side=1),
        Kind((0, 3), size=(0.5, 1.0), side=-1),
    ),
    ("agreement", "faithful"): (Kind((6, 12), (0.0, 0.2), (0.1, 1.0), 1, slope=4.0),),
    ("agreement", "ignored"): (Kind((6, 12), (0.0, 0.05), (0.0, 1.0), 1),),
    ("sign-and-value", "faithful"): (Kind((5, 5), (2.5, 0.3), (0.5, 1.0), 1), Kind((4, 8), size=(0.1, 1.0))),
    ("sign-and-value", "ignored"): (
        Kind((5, 5), (1.5, 0.3), (0.1, 0.4)),
        Kind((8, 12), size=(0.5, 1.0), side=1),
    ),
    ("head-removal", "faithful"): (KEY, FILLER._replace(size=(0.1, 0.4), side=-1)),
    ("head-removal", "ignored"): (EVERY,),
    ("identifiability", "faithful"): (FILLER._replace(size=(0.0, 1.0)),),
    ("identifiability", "ignored"): (FILLER._replace(size=(0.0, 1.0)),),
}
UNRELATED = {
    "unrelated, nearly equal": (Kind((6, 12), (0.0, 0.05), (0.0, 1.0)),),
    "unrelated, any size": (Kind((6, 12), (0.0, 1.0), (0.0, 1.0)),),
}
UNTRAINED = "unrelated, untrained"
EVERYWHERE = {
    "faithful": (
        Kind((1, 1), (6.0, 0.1), (0.9, 1.0), 1),
        Kind((4, 4), (1.3, 0.1), (0.3, 0.35), 1),
        Kind((8, 10), (0.5, 0.1), (0.2, 0.28), -1),
    ),
    "ignored": (Kind((8, 10), (0.0, 0.05), (0.6, 1.0), 1), Kind((2, 4), (0.0, 0.05), (0.15, 0.3), -1)),
}
"""Words of a model that every probe which does not train should pass, and of one that none should."""
_LONG: dict[str, object] = {"n_epochs": 12, "learning_rate": 0.02}
SETTINGS: dict[str, dict[str, object]] = {
    "adversarial": {"n_ascent": 0},
    "uniform-and-frozen": {"n_seeds": 1, **_LONG},
    "trained-adversary": _LONG,
    "deceived": {
        "words": " ".join(f"t{t}{side}{i}" for t in (0, 1) for side in "np" for i in range(3)),
        "penalty": 10.0,
        **_LONG,
    },
}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", default="", help="names of probes, separated by commas")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{given.seeds} seeds; {N_TEXTS} texts, {N_TESTED} where models are trained on {N_TRAIN}\n")
    print("| probe or use | case | yes | partly | no | unknown | error | undecided |\n" + "| --- " * 8 + "|")
    rows = [(name, case) for name in (given.only.split(",") if given.only else probes()) for case in cases_of(name)]
    for name, case in sorted(rows, key=lambda row: row[1] not in RIGHT):
        write_row(name, case, [answer_of(name, case, seed) for seed in range(given.seeds)])
    for case in RIGHT if not given.only else ():
        answers = [verdicts_of(case, seed) for seed in range(given.seeds)]
        for use in answers[0]:
            write_row(use, case, [one[use] for one in answers])
    print(f"\n{process_time():.0f} seconds of CPU")


def write_row(name: str, case: str, answers: Sequence[Answer]) -> None:
    """Prints how often each answer was given, and the shares that are wrong and undecided where one is right."""
    counts, shares = Counter(answers), ["", ""]
    if case in RIGHT:
        wrong = counts["no" if RIGHT[case] == "yes" else "yes"]
        shares = [f"{n / len(answers):.0%}" for n in (wrong, counts["partly"] + counts["unknown"])]
    print(f"| {' | '.join(map(str, (name, case, *(counts[answer] for answer in ANSWERS), *shares)))} |", flush=True)


def verdicts_of(case: str, seed: int, n_texts: int = N_TEXTS) -> dict[str, Answer]:
    """The verdict for each use, of a model that is faithful, or not, in the sense of all probes that do not train."""
    width = 32 if case == "faithful" else 6
    made = of_kinds(np.random.default_rng(seed), EVERYWHERE[case], n_texts, averaging, width)
    inquiry = made.inquiry(n_texts, seed)
    used = [build_probe(name) for name, kind in probes().items() if not kind.trains]
    outcomes = tuple(ProbeOutcome(one, {}, one.measure(inquiry)) for one in used)
    report = ProbeReport("", "", "planted", n_texts, "word", seed, outcomes)
    return {verdict.use: verdict.answer for verdict in report.verdicts if verdict.rests_on}


def answer_of(name: str, case: str, seed: int) -> Answer:
    """What a probe answers in one case."""
    # With 130 texts the same accuracy with and without attention is known to 3 points.
    n_texts = N_TESTED if probes()[name].trains else N_TEXTS
    return build_probe(name).measure(planted(name, case, n_texts, seed).inquiry(n_texts, seed)).answer


def cases_of(name: str) -> tuple[str, ...]:
    """The cases of a probe; one that trains has a single case without relation."""
    return (*RIGHT, *((UNTRAINED,) if probes()[name].trains else UNRELATED))


def build_probe(name: str) -> Probe:
    return probes()[name](**SETTINGS.get(name, {}))


def planted(name: str, case: str, n_texts: int, seed: int) -> Planted:
    """The model and the texts of a case of one probe."""
    rng = np.random.default_rng(seed)
    if probes()[name].trains:
        return retrieval(rng, case, n_texts + N_TRAIN)
    width = 6 if (name, case) == ("identifiability", "ignored") else 32
    kinds = RECIPES.get((name, case)) or UNRELATED[case]
    return of_kinds(rng, kinds, n_texts, with_heads if name == "head-removal" else averaging, width)


def of_kinds(
    rng: np.random.Generator,
    kinds: Sequence[Kind],
    n_texts: int,
    build: Callable[..., Classic | SingleLayer],
    width: int,
) -> Planted:
    """A model with words of these kinds, whose states have this many coordinates, and its texts."""
    words, texts, labels = drawn(rng, kinds, n_texts)
    scores, values = np.array(list(words.values())).T
    model = build(rng, Vocabulary((*SPECIAL_WORDS, *words)), scores, values, width)
    return Planted(model, tuple(model.encode(" ".join(text)) for text in texts), labels)


def drawn(
    rng: np.random.Generator, kinds: Sequence[Kind], n_texts: int, n_words: int = 100
) -> tuple[dict[str, tuple[float, float]], list[list[str]], tuple[int, ...]]:
    """Words with their scores and values, n of each kind and side; and texts of them with their classes."""
    words = {}
    for number, kind in enumerate(kinds):
        for sign in (-1, 1):
            for i in range(n_words):
                size = rng.uniform(*kind.size)
                words[f"k{number}{'p' if sign > 0 else 'n'}{i}"] = (
                    rng.normal(*kind.score) + kind.slope * size,
                    sign * size,
                )
    labels = tuple(rng.permutation(np.arange(n_texts) % 2).tolist())
    texts = []
    for label in labels:
        text = []
        for number, kind in enumerate(kinds):
            # No word twice: two equal values can never be told apart by the output of a head.
            for i in rng.choice(n_words, rng.integers(kind.n[0], kind.n[1] + 1), replace=False):
                side = (2 * label - 1) * kind.side or rng.choice([-1, 1])
                text.append(f"k{number}{'p' if side > 0 else 'n'}{i}")
        texts.append([text[i] for i in rng.permutation(len(text))])
    return words, texts, labels


def averaging(
    rng: np.random.Generator, vocabulary: Vocabulary, scores: np.ndarray, values: np.ndarray, width: int
) -> Classic:
    """A classic model that reads every word alone, with these scores and values of the words.

    Coordinate 0 of a state is its score and 1 its value; the others are random and reach neither attention nor output.
    """
    h = rng.uniform(-0.9, 0.9, (len(vocabulary), width))
    largest = float(np.abs(scores).max())
    h[len(SPECIAL_WORDS) :, :2] = 0.9 * np.stack([scores / largest, values], axis=1)
    v = sqrt(width) * largest / 0.9 * torch.eye(width)[0]
    return _classic(rng, ClassicConfig("average", "dot", width, width, 64), vocabulary, h, 1, {"v": v})


def _classic(
    rng: np.random.Generator,
    config: ClassicConfig,
    vocabulary: Vocabulary,
    h: np.ndarray,
    place: int,
    weights: Mapping[str, torch.Tensor],
) -> Classic:
    """A classic model with these states of the words; the margin is a random multiple of their coordinate `place`."""
    network = initial_classic(config, len(vocabulary), 0)
    new = {name: torch.zeros_like(weight) for name, weight in network.state_dict().items()}
    h[[CLS, UNK]] = 0
    new["W_e"] = torch.from_numpy(np.arctanh(h)).float()
    new |= {name: torch.eye(config.d_e) for name in new if name.endswith("map.weight")}
    new["W_c.weight"][:, place] = torch.tensor([-0.5, 0.5]) * rng.uniform(4, 8)
    network.load_state_dict(new | dict(weights))
    return Classic(network.eval(), vocabulary, CLASSES)


def with_heads(
    rng: np.random.Generator, vocabulary: Vocabulary, scores: np.ndarray, values: np.ndarray, width: int
) -> SingleLayer:
    """The paper's model with three heads: the first has these scores and values, the others look at random.

    Embeddings are large beside those of positions, which are noise. [cls] and padding get hardly any attention.
    """
    n_heads, large = 3, 30.0
    config = Config(n_heads, 64, width, 1, 1, 2)
    weights = {name: torch.zeros(shape) for name, shape in weight_shapes(config, len(vocabulary)).items()}
    e = np.zeros((len(vocabulary), width))
    e[2:, 0], e[2:, 1] = values, scores
    e[2:, 2 : n_heads + 1] = rng.normal(0, 0.3, (len(scores), n_heads - 1))
    e[[CLS, UNK], 1 : n_heads + 1] = -20
    e[CLS, n_heads + 1] = 1
    weights["W_e"] = torch.from_numpy(large * e)
    weights["W_q"][:, 0, n_heads + 1] = 1 / large
    for head in range(n_heads):
        weights["W_k"][head, 0, 1 + head] = 1 / large
    weights["W_v"][:, 0, 0] = 1 / large
    gain = torch.tensor([1.0, 0.1, 0.1]) * n_heads * rng.uniform(4, 8)
    weights["W_l"] = gain[:, None, None] * torch.tensor([-0.5, 0.5])[:, None]
    return SingleLayer(Network(config, {k: w.double() for k, w in weights.items()}), vocabulary, CLASSES)


def retrieval(rng: np.random.Generator, case: str, n_texts: int) -> Planted:
    """Pairs: a text with words of three topics of six, and a question that names one of them.

    Faithful: the class is that of the word asked for. A model of this kind adds what it reads of the question to the
    mean of the text's words, so that without attention it cannot answer. Ignored: every word has the class. Unrelated:
    the model has initial weights, and the class is drawn without regard to the texts.
    """
    labels, documents = [], []
    model = _asked(rng)
    if case == UNTRAINED:
        model = fresh(model, int(rng.integers(2**31)))
    for _ in range(n_texts):
        topics, sides = rng.choice(N_TOPICS, N_SHOWN, replace=False), rng.integers(0, 2, N_SHOWN)
        if case == "ignored":
            sides[:] = sides[0]
        text = [f"t{t}{'np'[side]}{rng.integers(3)}" for t, side in zip(topics, sides, strict=True)]
        asked = f"ask{topics[0]}x{rng.integers(3)}"
        documents.append(model.encode(Pair(" ".join(rng.permutation(text)), asked)))
        labels.append(int(sides[0] if case in RIGHT else rng.integers(2)))
    return Planted(model, tuple(documents), tuple(labels))


def _asked(rng: np.random.Generator) -> Classic:
    """A classic model of pairs that attends to the word of the topic that is asked for."""
    words = [f"t{t}{side}{i}" for t in range(N_TOPICS) for side in "np" for i in range(3)]
    questions = [f"ask{t}x{i}" for t in range(N_TOPICS) for i in range(3)]
    vocabulary, width = Vocabulary((*SPECIAL_WORDS, *words, *questions)), 2 * N_TOPICS + 2
    h = rng.normal(0, 0.05, (len(vocabulary), width))
    for word, row in vocabulary.index.items():
        h[row, int(word.removeprefix("ask").removeprefix("t")[0])] = 0.9
        if word in words:
            h[row, N_TOPICS] = rng.uniform(0.6, 0.95) * (1 if word[2] == "p" else -1)
    config = ClassicConfig("average", "tanh", width, width, 16, pairs=True)
    # A unit for each topic, which is high only if word and question both have it; the question is half of [cls].
    units = torch.eye(config.d_att, width)
    weights = {"W_1.weight": 3 * units, "W_2.weight": 6 * units, "W_1.bias": torch.full((config.d_att,), -4.0)}
    weights["v"] = 2.5 * (torch.arange(config.d_att) < N_TOPICS).float()
    return _classic(rng, config, vocabulary, h, N_TOPICS, weights)


if __name__ == "__main__":
    main()
