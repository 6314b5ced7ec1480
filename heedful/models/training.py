"""Trains the single-layer classifier as in Appendix F: AdamW, cross-entropy, the best validation epoch kept."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.datasets import Dataset, Example
from heedful.document import Document, check_text
from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.models.budget import check_device
from heedful.models.fitting.batch import BatchLoss, cross_entropy, run_batch
from heedful.models.fitting.better_attention import PENALTIES, check_penalties, penalised
from heedful.models.network import BIASES, MATRICES, Config, Network, weight_shapes
from heedful.models.single_layer import SingleLayer
from heedful.models.training_loop import BatchProgress, Rows, TrainingLoop, TrainingState, shuffled
from heedful.models.vocabulary import CLS, build_vocabulary, split_plain
from heedful.run_folder import RunFolder, write_atomically


@final
@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are Appendix F. Words with fewer than `min_count` occurrences are unknown.

    `entropy` and `rationale` are weights of losses for better attention (docs/better-attention.md); 0 leaves a loss
    out.
    """

    learning_rate: float = 1e-4
    batch_size: int = 16
    n_epochs: int = 10
    min_count: int = 1
    seed: int = 0
    device: str = "cpu"
    entropy: float = 0.0
    rationale: float = 0.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch_size", "n_epochs", "min_count"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be above 0; {getattr(self, name)} was given.")
        check_penalties({"entropy": self.entropy, "rationale": self.rationale})
        check_seed(self.seed)
        check_device(self.device)


@final
class Epoch(NamedTuple):
    """The results of one pass over the data."""

    number: int
    loss: float
    train_accuracy: float
    validation_accuracy: float

    @property
    def summary(self) -> str:
        """The results on one line."""
        return (
            f"loss {self.loss:.4f}, training accuracy {self.train_accuracy:.2%}, "
            f"validation accuracy {self.validation_accuracy:.2%}"
        )


@final
@dataclass(frozen=True)
class ModelCard:
    """The model card: the facts that a user of a trained model needs."""

    kind: str
    command: str
    dataset: str
    best_epoch: int
    validation_accuracy: float
    n_test: int
    test_accuracy: float
    n_distinct_test: int
    distinct_test_accuracy: float
    n_words: int
    fingerprint: str
    sha256: str

    @property
    def summary(self) -> str:
        """The result on the test split."""
        return f"test accuracy {share(self.test_accuracy)}"

    def as_markdown(self, config: Mapping[str, object]) -> str:
        """The card as Markdown."""
        settings = ", ".join(f"{name} {value}" for name, value in config.items())
        return (
            f"# Model card\n\n- Model: {self.kind}, {settings}; {self.n_words:,} words\n"
            f"- Command: `{self.command}`\n- Data: {self.dataset}\n- Best epoch on the validation split: "
            f"epoch {self.best_epoch}, accuracy {self.validation_accuracy:.2%}\n"
            f"- Test accuracy as shipped: **{share(self.test_accuracy)}** on all {self.n_test:,} texts; "
            f"{share(self.distinct_test_accuracy)} on the {self.n_distinct_test:,} that are neither duplicates "
            f"nor in the training half\n- Fingerprint, stored with every explanation: `{self.fingerprint}`\n"
            f"- SHA-256 of model.safetensors: `{self.sha256}`\n"
        )


def share(accuracy: float) -> str:
    """An accuracy as people read it; there is none where there were no texts."""
    return "not measured" if isnan(accuracy) else f"{accuracy:.2%}"


def train(
    dataset: Dataset, config: Config, recipe: Recipe, folder: Path, watch: BatchProgress = lambda *_: None
) -> tuple[SingleLayer, list[Epoch]]:
    """Trains, or resumes from the last finished epoch in the folder; the same seed gives the same weights.

    `watch` is called after every batch with the epoch, the batch, and the number of batches in an epoch. After each
    epoch `state.safetensors` holds everything that is needed to resume, so a kill loses at most the current epoch.
    """
    # The test split is read now, though it is needed only at the end: a long run must not end without its card.
    training, validation, _ = (dataset.examples(split) for split in ("train", "validation", "test"))
    if config.n_classes != len(dataset.classes):
        raise BadInput(f"{dataset.name} has labels of {len(dataset.classes)} classes; n_classes is {config.n_classes}.")
    check_splits(dataset.name, training, validation)
    # The words of the validation reviews too, as in the authors' attention_meets_xai, multi_head_trainer.py.
    vocabulary = build_vocabulary([check_text(example.text) for example in (*training, *validation)], recipe.min_count)
    network = Network(config, initial_weights(config, len(vocabulary), recipe.seed)).to(recipe.device)
    model = SingleLayer(network, vocabulary, dataset.classes)
    (x, y), held_out = _tensors(model, training), _tensors(model, validation)
    documents = [model.encode(example.text) for example in training] if recipe.entropy or recipe.rationale else []
    penalties = {"entropy": recipe.entropy, "rationale": recipe.rationale}
    loss = penalised(penalties, documents, training)
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=recipe.learning_rate, fused=True)
    with RunFolder(folder).alone():
        claim_run(folder, dataset, config, recipe, repr((training, validation)))
        state = TrainingState(folder / "state.safetensors", dict(network.named_parameters()), optimiser)
        state.restore(Epoch)
        fit = _Fit(model, state, recipe, x, y, held_out, torch.zeros((), device=x.device), documents, loss)
        TrainingLoop(fit.batches, fit.loss, fit.evaluate, recipe.seed).run(recipe.n_epochs, state, watch)
    state.restore_best()
    return model, state.epochs


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    """One training run: its batches, its loss, and the accuracies after an epoch."""

    model: SingleLayer
    state: TrainingState
    recipe: Recipe
    x: Int[Tensor, "batch token"]
    y: Int[Tensor, "batch"]
    held_out: tuple[Int[Tensor, "text token"], Int[Tensor, "text"]]
    n_correct: Float[Tensor, ""]
    documents: Sequence[Document]
    """The training texts as a loss for better attention needs them; empty without one."""
    whole_loss: BatchLoss

    def batches(self, epoch: int) -> Sequence[Rows]:
        return shuffled(len(self.x), self.recipe.seed, epoch).to(self.x.device).split(self.recipe.batch_size)

    def loss(self, rows: Rows) -> Float[Tensor, ""]:
        if self.whole_loss is cross_entropy:
            logits = self.model.network(self.model.network.embed(self.x[rows]))
            loss = torch.nn.functional.cross_entropy(logits, self.y[rows])
        else:
            documents = [self.documents[row] for row in rows.tolist()]
            batch = run_batch(self.model, rows, documents, self.y[rows], self.whole_loss)
            logits, loss = batch.logits, self.whole_loss(batch)
        self.n_correct.add_((logits.detach().argmax(dim=1) == self.y[rows]).sum())
        return loss

    def evaluate(self, number: int, mean_loss: float) -> Epoch:
        train_accuracy = float(self.n_correct) / len(self.x)
        epoch = Epoch(number, mean_loss, train_accuracy, measure_accuracy(self.model.network, *self.held_out))
        self.n_correct.zero_()
        if all(epoch.validation_accuracy > before.validation_accuracy for before in self.state.epochs):
            self.state.keep_best()
        return epoch


def check_splits(name: str, training: Sequence[Example], validation: Sequence[Example]) -> None:
    """Refuses a data set with nothing to train on, or nothing to choose the best epoch with."""
    if not training or not validation:
        raise BadInput(
            f"{name} has {len(training)} training and {len(validation)} validation texts; both must be "
            "above 0. Lower n_validation."
        )


def claim_run(folder: Path, dataset: Dataset, config: Any, recipe: Any, data: str) -> None:
    """Claims the folder for a run on this data with these settings, or refuses it if it belongs to another run."""
    run = RunFolder(folder)
    if (folder / "state.safetensors").exists() and run.settings() is None:
        raise BadInput(f"{folder} contains a run with unknown settings; choose another folder.")
    content = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    settings = {"data": content, "dataset": {"name": dataset.name, **asdict(dataset)}}
    # Older runs did not have the choice of padding.
    own = {name: value for name, value in asdict(config).items() if (name, value) != ("padding", "unk")}
    run.claim({**settings, "config": own, "recipe": recipe_settings(recipe)})


def recipe_settings(recipe: Any) -> dict[str, Any]:
    """The settings of a recipe. A loss for better attention that is off is left out: older runs did not have it."""
    return {name: value for name, value in asdict(recipe).items() if value or name not in PENALTIES}


def initial_weights(config: Config, n_words: int, seed: int) -> dict[str, Tensor]:
    """The weights before training: W_e and learned positions standard normal, the rest uniform on ±0.1, biases zero.

    As in the authors' attention_meets_xai, models/head.py and models/multi_head.py; the paper does not say.
    """
    rng = torch.Generator().manual_seed(seed)
    shapes = weight_shapes(config, n_words)
    weights = {"W_e": torch.randn(shapes["W_e"], generator=rng)}
    weights |= {name: torch.rand(shapes[name], generator=rng) * 0.2 - 0.1 for name in MATRICES[1:]}
    weights |= {name: torch.zeros(shapes[name]) for name in BIASES}
    return weights | {name: torch.randn(shapes[name], generator=rng) for name in shapes if name not in weights}


@torch.no_grad()
def measure_accuracy(network: Network, x: Int[Tensor, "batch token"], y: Int[Tensor, "batch"]) -> float:
    """The share of documents whose predicted class is the label; NaN if there are none."""
    if not len(x):
        return nan
    right = [
        (network(network.embed(part)).argmax(dim=1) == label).sum()
        for part, label in zip(x.split(256), y.split(256), strict=True)
    ]
    return float(torch.stack(right).sum()) / len(x)


def publish(model: SingleLayer, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path) -> ModelCard:
    """Writes the model and its card to the folder; accuracies are those of the written file."""
    path = folder / "model.safetensors"
    model.save(path, {"command": command, "epochs": epochs})
    shipped = SingleLayer.load(path)

    def measure(examples: Sequence[Example]) -> float:
        return measure_accuracy(shipped.network, *_tensors(shipped, examples))

    return write_card(shipped, "single-layer attention classifier", measure, dataset, epochs, command, folder)


def write_card(
    shipped: Any,
    kind: str,
    measure: Callable[[Sequence[Example]], float],
    dataset: Dataset,
    epochs: Sequence[Epoch],
    command: str,
    folder: Path,
) -> ModelCard:
    """Writes the card of a classifier of words as its file was loaded; `measure` gives its accuracy on examples."""
    test, fresh = dataset.examples("test"), new_examples(dataset)
    best = max(epochs, key=lambda epoch: epoch.validation_accuracy)
    card = ModelCard(
        kind=kind,
        command=command,
        dataset=about_data(dataset),
        best_epoch=best.number + 1,
        validation_accuracy=best.validation_accuracy,
        n_test=len(test),
        test_accuracy=measure(test),
        n_distinct_test=len(fresh),
        distinct_test_accuracy=measure(fresh),
        n_words=len(shipped.vocabulary),
        fingerprint=shipped.fingerprint,
        sha256=hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
    )
    write_atomically(folder / "card.md", card.as_markdown(asdict(shipped.network.config)))
    return card


def new_examples(dataset: Dataset) -> list[Example]:
    """The distinct test texts that are not in the training half."""
    seen = {example.text for split in ("train", "validation") for example in dataset.examples(split)}
    return list({example.text: example for example in dataset.examples("test") if example.text not in seen}.values())


def about_data(dataset: Dataset) -> str:
    """The name of a data set, its settings, and the sizes of its splits."""
    settings = ", ".join(f"{name} {value}" for name, value in asdict(dataset).items())
    sizes = " / ".join(str(len(dataset.examples(split))) for split in ("train", "validation", "test"))
    return f"{dataset.name} ({settings}), {sizes} texts"


def _tensors(
    model: SingleLayer, examples: Sequence[Example]
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch"]]:
    ids = [np.append(CLS, model.vocabulary.ids(split_plain(example.text))) for example in examples]
    labels = torch.tensor([e.label for e in examples], dtype=torch.long, device=model.network.W_e.device)
    return model.padded(ids), labels
