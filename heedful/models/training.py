"""Trains the single-layer classifier as in Appendix F: AdamW, cross-entropy, the best validation epoch kept."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from heedful.datasets import Dataset, Example
from heedful.document import check_text
from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.models.budget import check_device
from heedful.models.fitting.better_attention import PENALTIES, check_penalties, penalised
from heedful.models.fitting.fit import FitRecipe, Fitting, accuracy_of, read_examples
from heedful.models.network import BIASES, MATRICES, Config, Network, weight_shapes
from heedful.models.single_layer import SingleLayer
from heedful.models.training_loop import BatchProgress, Epoch, Rows, shuffled
from heedful.models.vocabulary import build_vocabulary
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
    (documents, labels), held_out = read_examples(model, training), read_examples(model, validation)
    loss = penalised({"entropy": recipe.entropy, "rationale": recipe.rationale}, documents, training)
    steps = FitRecipe(recipe.n_epochs, recipe.batch_size, recipe.learning_rate, seed=recipe.seed)
    fitting = Fitting(model, documents, labels, steps, loss, held_out=held_out, optimiser=_adamw, batches=_batches)
    with RunFolder(folder).alone():
        claim_run(folder, dataset, config, recipe, repr((training, validation)))
        return model, fitting.run(folder / "state.safetensors", watch)


def _adamw(weights: list[Tensor], recipe: FitRecipe) -> torch.optim.Optimizer:
    return torch.optim.AdamW(weights, lr=recipe.learning_rate, fused=True)


def _batches(lengths: Sequence[int], recipe: FitRecipe, epoch: int) -> Sequence[Rows]:
    return shuffled(len(lengths), recipe.seed, epoch).split(recipe.batch_size)


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


def publish(model: SingleLayer, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path) -> ModelCard:
    """Writes the model and its card to the folder; accuracies are those of the written file."""
    path = folder / "model.safetensors"
    model.save(path, {"command": command, "epochs": epochs})
    shipped = SingleLayer.load(path)

    def measure(examples: Sequence[Example]) -> float:
        return accuracy_of(shipped, *read_examples(shipped, examples))

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
