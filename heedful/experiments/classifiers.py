"""Trains small transformer classifiers on labelled texts; a killed run resumes after its last finished epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import BadInput
from heedful.experiments.training_texts import TrainingTexts
from heedful.experiments.workspace import Workspace
from heedful.family import build
from heedful.models.network import LEARNED, Config, Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training_loop import Rows, Schedule, TrainingLoop, TrainingState, adamw, shuffled
from heedful.models.transformer import Transformer, TransformerConfig, TransformerNetwork, initial_network
from heedful.models.vocabulary import CLS, UNK, Vocabulary, build_vocabulary, split_plain

Hold = Callable[[TransformerNetwork], None]
"""Restores weights that are not trained; called before the first step and after every step."""


@final
@dataclass(frozen=True)
class ClassifierRecipe:
    """How a classifier is trained. Words with fewer than `min_count` occurrences are unknown.

    Word vectors start as N(0, word_scale²). The vectors of rare words hardly change, so their initial values are noise:
    on 6,000 reviews the single layer learns better from 0.1 than from 1.
    """

    schedule: Schedule
    min_count: int = 2
    word_scale: float = 0.1


def hold_nothing(network: TransformerNetwork) -> None:
    """Trains every weight."""


def train_classifier(
    workspace: Workspace,
    key: str,
    config: TransformerConfig,
    texts: TrainingTexts,
    recipe: ClassifierRecipe,
    hold: Hold = hold_nothing,
) -> Transformer:
    """A transformer trained on the texts, or the one that the workspace has stored under the key.

    The last epoch is kept, without selection: the learning rate is 0 by then, and no validation texts are needed.
    Weights are rounded to half precision, the precision of a model file, so that the numbers describe the model that
    can be loaded. Texts are padded to T_max with [unk], which receives attention (Eq. (4)), so a batch of short texts
    cannot be shortened: it would change the model.

    On a CPU a resumed run gives the same bytes as an uninterrupted one; on a GPU products are in bfloat16 and sums have
    no fixed order, so two runs give slightly different models.
    """
    words = workspace.step(f"words-{texts.name}-{recipe.min_count}", lambda: _words(texts, recipe))
    vocabulary = Vocabulary(tuple(words))
    state = workspace.folder / "steps" / f"{key}-state.safetensors"

    def work() -> dict[str, Tensor]:
        network = initial_network(config, len(vocabulary), workspace.seed).to(workspace.device)
        with torch.no_grad():
            network.W_e.mul_(recipe.word_scale)
            hold(network)
        fit = _Fit(workspace, network, recipe.schedule, hold, *_training_set(workspace, texts, vocabulary, config))
        fit.run(TrainingState(state, dict(network.named_parameters()), adamw(network, recipe.schedule)))
        return {name: weight.half().float() for name, weight in network.state_dict().items()}

    weights = workspace.tensors(key, work)
    state.unlink(missing_ok=True)
    network = initial_network(config, len(vocabulary), workspace.seed).to(workspace.device)
    network.load_state_dict(weights)
    return Transformer(network.eval(), vocabulary, texts.classes)


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    """One training run: its batches and its loss."""

    workspace: Workspace
    network: TransformerNetwork
    schedule: Schedule
    hold: Hold
    x: Int[Tensor, "text token"]
    y: Int[Tensor, "text"]

    def run(self, state: TrainingState) -> None:
        state.restore(lambda *row: row)
        loop = TrainingLoop(
            self.batches,
            self.loss,
            lambda number, loss: (number, loss),
            self.workspace.seed,
            self.schedule.rate,
            list(self.network.parameters()),
            self.after_step,
        )
        loop.run(self.schedule.n_epochs, state)

    def batches(self, epoch: int) -> Sequence[Rows]:
        return shuffled(len(self.x), self.workspace.seed, epoch).to(self.x.device).split(self.schedule.batch_size)

    def loss(self, rows: Rows) -> Float[Tensor, ""]:
        device = self.x.device.type
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = _logits(self.network, self.x[rows])
        return nn.functional.cross_entropy(logits.float(), self.y[rows])

    @torch.no_grad()
    def after_step(self) -> None:
        self.hold(self.network)


def correct_predictions(workspace: Workspace, key: str, model: Transformer, texts: TrainingTexts) -> list[bool]:
    """For every test text, whether the model's largest logit is that of its label."""
    labels = torch.tensor([example.label for example in texts.test], device=workspace.device)

    @torch.no_grad()
    def work() -> list[bool]:
        ids = _ids(workspace, texts, "test", model.vocabulary, model.network.config.T_max)
        predicted = torch.cat([_logits(model.network, part).argmax(dim=1) for part in ids.split(256)])
        return (predicted == labels).tolist()

    return workspace.step(f"{key}-right", work)


def as_single_layer(model: Transformer) -> SingleLayer:
    """The classifier as the paper's model, for which LIME is exact; it must have every switch off, so that W_o is W_ℓ.

    Word vectors are in single precision and all else in double, as in `SingleLayer.load`.
    """
    config = model.network.config
    switches = (config.depth, config.tied, config.reads_last, config.padding, config.positional in LEARNED)
    if not config.plain or switches != (1, "no", False, "unk", False):
        raise BadInput("Only a transformer of one layer with every switch off equals the paper's model.")
    names = ("n_heads", "T_max", "d_e", "d_att", "d_out", "n_classes", "positional")
    same = {name: getattr(config, name) for name in names} | {"bias": True}
    (layer,) = model.network.layers
    weights = {name: weight.detach().double() for name, weight in layer.get_submodule("weights").named_parameters()}
    weights["W_l"] = weights.pop("W_o")
    weights["W_e"] = model.network.W_e.detach()
    network = Network(build(Config, "the model", same), weights).to(model.network.W_e.device)
    network.W_p.copy_(model.network.W_p)
    return SingleLayer(network, model.vocabulary, model.classes)


def _words(texts: TrainingTexts, recipe: ClassifierRecipe) -> list[str]:
    return list(build_vocabulary([example.text for example in texts.train], recipe.min_count).words)


def _training_set(
    workspace: Workspace, texts: TrainingTexts, vocabulary: Vocabulary, config: TransformerConfig
) -> tuple[Int[Tensor, "text token"], Int[Tensor, "text"]]:
    labels = torch.tensor([example.label for example in texts.train], device=workspace.device)
    return _ids(workspace, texts, "train", vocabulary, config.T_max), labels


def _ids(
    workspace: Workspace, texts: TrainingTexts, part: str, vocabulary: Vocabulary, T_max: int
) -> Int[Tensor, "text token"]:
    """The token ids of the texts: [cls], words, [unk] up to T_max; stored once for all models of a workspace."""
    examples = texts.train if part == "train" else texts.test

    def work() -> dict[str, Tensor]:
        rows = np.full((len(examples), T_max), UNK, dtype=np.int32)
        for row, example in zip(rows, examples, strict=True):
            ids = np.append(CLS, vocabulary.ids(split_plain(example.text)))[:T_max]
            row[: len(ids)] = ids
        return {"ids": torch.from_numpy(rows)}

    return workspace.tensors(f"ids-{texts.name}-{part}-{T_max}-{len(vocabulary)}", work)["ids"].long()


def _logits(network: TransformerNetwork, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch class"]:
    return network(nn.functional.embedding(ids, network.W_e) + network.W_p, (ids != UNK).sum(dim=1) - 1, None)
