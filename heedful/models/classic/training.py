"""Trains a classic model on a data set of texts or pairs, and writes it with its card."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from heedful.datasets import Dataset, Example
from heedful.document import Document, Pair, check_text
from heedful.errors import BadInput
from heedful.models.budget import check_device
from heedful.models.classic.classifier import Classic
from heedful.models.classic.file import load_classic, save_classic
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.classic.word_vectors import begin_with_vectors
from heedful.models.fitting.better_attention import PENALTIES, check_penalties, penalised
from heedful.models.fitting.fit import FitRecipe, Fitting, accuracy_of
from heedful.models.training import Epoch, ModelCard, check_splits, claim_run, write_card
from heedful.models.training_loop import BatchProgress
from heedful.models.vocabulary import build_vocabulary
from heedful.run_folder import RunFolder


@final
@dataclass(frozen=True)
class ClassicRecipe:
    """How to train; words with fewer than `min_count` occurrences in the training texts are unknown.

    `entropy`, `rationale`, `diversity` and `leak` are weights of losses for better attention; 0 leaves a loss out
    (docs/better-attention.md). `word_vectors` is a text file of word vectors to begin with, as of GloVe or fastText.
    """

    learning_rate: float = 1e-3
    batch_size: int = 32
    n_epochs: int = 8
    min_count: int = 2
    weight_decay: float = 1e-5
    seed: int = 0
    device: str = "cpu"
    entropy: float = 0.0
    rationale: float = 0.0
    diversity: float = 0.0
    leak: float = 0.0
    word_vectors: str = ""

    def __post_init__(self) -> None:
        if not self.min_count > 0:
            raise BadInput(f"min_count must be above 0; {self.min_count} was given.")
        check_penalties({name: getattr(self, name) for name in PENALTIES})
        check_device(self.device)
        FitRecipe(self.n_epochs, self.batch_size, self.learning_rate, self.weight_decay, self.seed)

    @property
    def steps(self) -> FitRecipe:
        """The part that any training on documents has."""
        return FitRecipe(self.n_epochs, self.batch_size, self.learning_rate, self.weight_decay, self.seed)


def train_classic(
    dataset: Dataset, config: ClassicConfig, recipe: ClassicRecipe, folder: Path, watch: BatchProgress = lambda *_: None
) -> tuple[Classic, list[Epoch]]:
    """Trains, or resumes from the last finished epoch in the folder; the weights of the best validation epoch stay.

    The number of classes, and whether the texts are pairs, are those of the data.
    """
    # The test split is read now, though it is needed only at the end: a long run must not end without its card.
    training, validation, _ = (dataset.examples(split) for split in ("train", "validation", "test"))
    check_splits(dataset.name, training, validation)
    if recipe.leak and config.encoder == "average":
        raise BadInput("The encoder 'average' reads every word alone, so nothing can leak; leave leak at 0.")
    config = replace(config, n_classes=len(dataset.classes), pairs=isinstance(training[0].text, Pair))
    texts = [check_text(text) for example in training for text in _texts(example)]
    vocabulary = build_vocabulary(texts, recipe.min_count)
    network = initial_classic(config, len(vocabulary), recipe.seed).to(recipe.device)
    if recipe.word_vectors:
        begin_with_vectors(network, vocabulary, Path(recipe.word_vectors))
    model = Classic(network, vocabulary, dataset.classes)
    (documents, labels), held_out = _read(model, training), _read(model, validation)
    loss = penalised({name: getattr(recipe, name) for name in PENALTIES}, documents, training)
    with RunFolder(folder).alone():
        claim_run(folder, dataset, config, recipe, repr((training, validation, model.fingerprint)))
        fitting = Fitting(model, documents, labels, recipe.steps, loss, held_out=held_out)
        epochs = fitting.run(folder / "state.safetensors", watch)
    return model, epochs


def publish_classic(model: Classic, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path) -> ModelCard:
    """Writes the model and its card to the folder; accuracies are those of the written file."""
    path = folder / "model.safetensors"
    save_classic(model, path)
    shipped = load_classic(path)
    shipped.network.to(model.network.W_e.device)

    def measure(examples: Sequence[Example]) -> float:
        return accuracy_of(shipped, *_read(shipped, examples))

    return write_card(shipped, f"classic model, {shipped.family}", measure, dataset, epochs, command, folder)


def _texts(example: Example) -> tuple[object, ...]:
    return (example.text.first, example.text.second) if isinstance(example.text, Pair) else (example.text,)


def _read(model: Classic, examples: Sequence[Example]) -> tuple[list[Document], list[int]]:
    return [model.encode(example.text) for example in examples], [example.label for example in examples]
