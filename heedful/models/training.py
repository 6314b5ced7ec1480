"""Trains the single-layer classifier as in Appendix F: AdamW, cross-entropy, the best validation epoch kept."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.datasets import Dataset, Example
from heedful.document import one_text
from heedful.errors import BadInput
from heedful.models.network import BIASES, MATRICES, Config, Network, weight_shapes
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import CLS, build_vocabulary, split_plain


@final
@dataclass(frozen=True)
class Recipe:
    """How to train; the defaults are Appendix F. Words seen fewer than `min_count` times are read as unknown."""

    learning_rate: float = 1e-4
    batch_size: int = 16
    n_epochs: int = 10
    min_count: int = 1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch_size", "n_epochs", "min_count"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name} must be above 0; {getattr(self, name)} was given.")
        if self.seed < 0:
            raise BadInput(f"A seed is a whole number from 0; {self.seed} was given.")
        check_device(self.device)


def check_device(device: str) -> None:
    """Refuses a device that the machine does not have, before anything was done."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise BadInput(f"There is no device {device!r} on this machine; cpu is always there.") from None


@final
class Epoch(NamedTuple):
    """What one pass over the data gave."""

    number: int
    loss: float
    train_accuracy: float
    validation_accuracy: float


@final
@dataclass(frozen=True)
class Card:
    """What a user of a trained model must know."""

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

    def as_markdown(self, config: Mapping[str, object]) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in config.items())
        return (
            f"# Model card\n\n- Model: single-layer attention classifier, {settings}; {self.n_words:,} words\n"
            f"- Command: `{self.command}`\n- Data: {self.dataset}\n- The best epoch on the validation split was kept: "
            f"epoch {self.best_epoch}, accuracy {self.validation_accuracy:.2%}\n"
            f"- Test accuracy as shipped: **{self.test_accuracy:.2%}** on all {self.n_test:,} texts; "
            f"{self.distinct_test_accuracy:.2%} on the {self.n_distinct_test:,} that neither repeat nor stand in the "
            f"training half\n- Fingerprint, kept with every explanation: `{self.fingerprint}`\n"
            f"- SHA-256 of model.safetensors: `{self.sha256}`\n"
        )


Watcher = Callable[[int, int, int], None]
"""Told after every batch: the epoch, the batch, and how many batches an epoch has."""


def train(
    dataset: Dataset, config: Config, recipe: Recipe, folder: Path, watch: Watcher = lambda *_: None
) -> tuple[SingleLayer, list[Epoch]]:
    """Trains, or goes on from the last whole epoch found in the folder; the same seed gives the same weights.

    After each epoch `state.safetensors` holds everything that is needed to go on, written beside the old one and then
    moved over it, so that a kill at any moment loses at most the epoch under way.
    """
    # The test split too, though it is not needed before the end: a long run must not end without its card.
    training, validation, _ = (dataset.examples(split) for split in ("train", "validation", "test"))
    if config.n_classes != len(dataset.classes):
        raise BadInput(f"{dataset.name} has {len(dataset.classes)} classes; n_classes is {config.n_classes}.")
    if not training or not validation:
        raise BadInput(
            f"{dataset.name} gives {len(training)} texts to train on and {len(validation)} to validate with; "
            "both are needed, so choose a smaller n_validation."
        )
    # The words of the validation reviews too, as in the authors' attention_meets_xai, multi_head_trainer.py.
    vocabulary = build_vocabulary([one_text(example.text) for example in (*training, *validation)], recipe.min_count)
    network = Network(config, initial_weights(config, len(vocabulary), recipe.seed)).to(recipe.device)
    model = SingleLayer(network, vocabulary, dataset.classes)
    x, y = _tensors(model, training)
    x_validation, y_validation = _tensors(model, validation)
    optimiser = torch.optim.AdamW(
        [weight for weight in network.parameters() if weight.requires_grad], lr=recipe.learning_rate, fused=True
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be made a folder: {error.strerror}.") from None
    data = hashlib.sha256(repr((training, validation)).encode("utf-8", "surrogatepass")).hexdigest()
    settings = json.dumps([data, dataset.name, *(asdict(part) for part in (dataset, config, recipe))])
    progress = _Progress(folder / "state.safetensors", network, optimiser, settings)
    best, epochs = progress.restore()

    for number in range(len(epochs), recipe.n_epochs):
        # The order depends on seed and epoch alone, so a resumed run sees the batches an unbroken one would.
        order = torch.from_numpy(np.random.default_rng((recipe.seed, number)).permutation(len(x)))
        batches = order.to(x.device).split(recipe.batch_size)
        total_loss = torch.zeros((), device=x.device)
        n_right = torch.zeros((), device=x.device)
        for count, batch in enumerate(batches, start=1):
            logits = network(network.embed(x[batch]))
            loss = torch.nn.functional.cross_entropy(logits, y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total_loss += loss.detach() * len(batch)
            n_right += (logits.detach().argmax(dim=1) == y[batch]).sum()
            watch(number, count, len(batches))
        if not total_loss.isfinite():
            raise BadInput(f"The loss is not a finite number in epoch {number + 1}; try a smaller learning_rate.")
        accuracy = measure_accuracy(network, x_validation, y_validation)
        if all(accuracy > epoch.validation_accuracy for epoch in epochs):
            best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        epochs.append(Epoch(number, float(total_loss) / len(x), float(n_right) / len(x), accuracy))
        progress.keep(best, epochs)

    network.load_state_dict(best)
    return model, epochs


def initial_weights(config: Config, n_words: int, seed: int) -> dict[str, Tensor]:
    """Where training starts: W_e standard normal, the rest uniform on ±0.1, biases zero.

    As in the authors' attention_meets_xai, models/head.py and models/multi_head.py; the paper does not say.
    """
    chance = torch.Generator().manual_seed(seed)
    shapes = weight_shapes(config, n_words)
    weights = {"W_e": torch.randn(shapes["W_e"], generator=chance)}
    weights |= {name: torch.rand(shapes[name], generator=chance) * 0.2 - 0.1 for name in MATRICES[1:]}
    return weights | {name: torch.zeros(shapes[name]) for name in BIASES}


@torch.no_grad()
def measure_accuracy(network: Network, x: Int[Tensor, "batch token"], y: Int[Tensor, "batch"]) -> float:
    """The share of documents whose largest logit is the label's."""
    right = [
        (network(network.embed(part)).argmax(dim=1) == label).sum()
        for part, label in zip(x.split(256), y.split(256), strict=True)
    ]
    return float(torch.stack(right).sum()) / len(x)


def publish(model: SingleLayer, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path) -> Card:
    """Writes the model and its card into the folder, and measures the model as written, half precision and all."""
    seen = {example.text for split in ("train", "validation") for example in dataset.examples(split)}
    test = dataset.examples("test")
    fresh = list({example.text: example for example in test if example.text not in seen}.values())
    path = folder / "model.safetensors"
    best = max(epochs, key=lambda epoch: epoch.validation_accuracy)
    model.save(path, {"command": command, "epochs": epochs})
    shipped = SingleLayer.load(path)
    card = Card(
        command=command,
        dataset=f"{dataset.name} ({', '.join(f'{name} {value}' for name, value in asdict(dataset).items())}), "
        f"{' / '.join(str(len(dataset.examples(split))) for split in ('train', 'validation', 'test'))} texts",
        best_epoch=best.number + 1,
        validation_accuracy=best.validation_accuracy,
        n_test=len(test),
        test_accuracy=measure_accuracy(shipped.network, *_tensors(shipped, test)),
        n_distinct_test=len(fresh),
        distinct_test_accuracy=measure_accuracy(shipped.network, *_tensors(shipped, fresh)),
        n_words=len(shipped.vocabulary),
        fingerprint=shipped.fingerprint,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
    )
    (folder / "card.md").write_text(card.as_markdown(asdict(shipped.network.config)), encoding="utf-8")
    return card


def _tensors(
    model: SingleLayer, examples: Sequence[Example]
) -> tuple[Int[Tensor, "batch token"], Int[Tensor, "batch"]]:
    ids = [np.append(CLS, model.vocabulary.ids(split_plain(example.text))) for example in examples]
    labels = torch.tensor([example.label for example in examples], device=model.network.W_e.device)
    return model.padded(ids), labels


@final
class _Progress(NamedTuple):
    """The state file of one training run."""

    path: Path
    network: Network
    optimiser: torch.optim.AdamW
    settings: str

    def keep(self, best: dict[str, Tensor], epochs: list[Epoch]) -> None:
        tensors = {f"best.{name}": tensor for name, tensor in best.items()}
        tensors |= {f"now.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for number, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": tensor for name, tensor in state.items()}
        metadata = {"settings": self.settings, "epochs": json.dumps(epochs)}
        fresh = self.path.with_suffix(".new")
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, fresh, metadata)
        fresh.replace(self.path)

    def restore(self) -> tuple[dict[str, Tensor], list[Epoch]]:
        if not self.path.exists():
            return {}, []
        try:
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise BadInput(f"{self.path.name} is damaged; delete it to train from the start.") from error
        if metadata.get("settings") != self.settings:
            raise BadInput(
                f"{self.path.parent} holds a run with other settings or data; name another folder or delete it."
            )
        self.network.load_state_dict(_under("now.", tensors))
        state = self.optimiser.state_dict()
        for name, tensor in _under("optimiser.", tensors).items():
            number, field = name.split(".")
            state["state"].setdefault(int(number), {})[field] = tensor
        self.optimiser.load_state_dict(state)
        return _under("best.", tensors), [Epoch(*row) for row in json.loads(metadata["epochs"])]


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
