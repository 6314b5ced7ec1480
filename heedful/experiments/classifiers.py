"""Trains our own transformer, any of its parts switched on, to tell labelled texts apart; a kill loses an epoch."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, cos, pi
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import BadInput
from heedful.experiments.material import Material
from heedful.experiments.workspace import Workspace
from heedful.models.network import Config, Network
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import Transformer, TransformerConfig, TransformerNetwork, initial_network
from heedful.models.vocabulary import CLS, UNK, Vocabulary, build_vocabulary, split_plain

Hold = Callable[[TransformerNetwork], None]
"""Puts back what is not to be learnt; asked before the first step and after every one."""


@final
@dataclass(frozen=True)
class Course:
    """How long and how fast to train: AdamW, the rate rising along a line and falling along a cosine to 0.

    Word vectors start as N(0, word_scale²). Those of rare words hardly move, and what they start with is noise: on
    6,000 reviews the single layer learns better from 0.1 than from 1.
    """

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.01
    rising_share: float = 0.1
    min_count: int = 2
    word_scale: float = 0.1

    def rate(self, share: float) -> float:
        """The learning rate when this share of all steps is done."""
        if share < self.rising_share:
            return self.learning_rate * share / self.rising_share
        return self.learning_rate * (1 + cos(pi * (share - self.rising_share) / (1 - self.rising_share))) / 2


def nothing(network: TransformerNetwork) -> None:
    """Everything is learnt."""


def train(
    workspace: Workspace, key: str, config: TransformerConfig, material: Material, course: Course, hold: Hold = nothing
) -> Transformer:
    """A transformer trained on the material, or the one that the workspace keeps under the key.

    The last epoch is kept and none is chosen: the rate has fallen to 0 by then, and no text is needed for a choice.
    Weights are rounded to half precision, which is what a file holds, so that figures are about the model that can be
    loaded. Texts are filled up to T_max with [unk], which is attended (Eq. (4)), so a batch of short texts cannot be
    cut shorter: another length is another model.

    After each epoch the workspace holds weights and moments. On a CPU a resumed run gives the bytes of an unbroken one;
    on a GPU products are in bfloat16 and sums have no fixed order, so two runs give slightly different models.
    """
    words = workspace.step(f"words-{material.name}-{course.min_count}", lambda: _words(material, course))
    vocabulary = Vocabulary(tuple(words))
    weights = workspace.tensors(key, lambda: _train(workspace, key, config, material, course, hold, vocabulary))
    network = initial_network(config, len(vocabulary), workspace.seed).to(workspace.device)
    network.load_state_dict(weights)
    return Transformer(network.eval(), vocabulary, material.classes)


def right(workspace: Workspace, key: str, model: Transformer, material: Material) -> list[bool]:
    """Of every text to be judged by, whether the model's largest logit is its label's."""
    labels = torch.tensor([example.label for example in material.test], device=workspace.device)

    @torch.no_grad()
    def judge() -> list[bool]:
        ids = _ids(workspace, material, "test", model.vocabulary, model.network.config.T_max)
        said = torch.cat([_logits(model.network, part).argmax(dim=1) for part in ids.split(256)])
        return (said == labels).tolist()

    return workspace.step(f"{key}-right", judge)


def as_single_layer(model: Transformer) -> SingleLayer:
    """The same classifier as the paper's model, whose LIME is exact; only with every switch off, where W_o is W_ℓ.

    Word vectors in single and all else in double precision, as `SingleLayer.load` has it.
    """
    config = model.network.config
    if not config.plain or config.depth != 1 or config.causal or config.tied != "no":
        raise BadInput("Only a transformer of one layer with every switch off is the paper's model.")
    sizes = (config.n_heads, config.T_max, config.d_e, config.d_att, config.d_out, config.n_classes)
    (layer,) = model.network.layers
    weights = {name: weight.detach().double() for name, weight in layer.get_submodule("weights").named_parameters()}
    weights["W_l"] = weights.pop("W_o")
    weights["W_e"] = model.network.W_e.detach()
    network = Network(Config(*sizes, positional=config.positional, bias=True), weights).to(model.network.W_e.device)
    network.W_p.copy_(model.network.W_p)
    return SingleLayer(network, model.vocabulary, model.classes)


def _words(material: Material, course: Course) -> list[str]:
    return list(build_vocabulary([example.text for example in material.train], course.min_count).words)


def _ids(
    workspace: Workspace, material: Material, part: str, vocabulary: Vocabulary, T_max: int
) -> Int[Tensor, "text token"]:
    """Texts as the model reads them: [cls], words, and [unk] up to T_max; cut once for all models of a workspace."""
    examples = material.train if part == "train" else material.test

    def cut() -> dict[str, Tensor]:
        rows = np.full((len(examples), T_max), UNK, dtype=np.int32)
        for row, example in zip(rows, examples, strict=True):
            ids = np.append(CLS, vocabulary.ids(split_plain(example.text)))[:T_max]
            row[: len(ids)] = ids
        return {"ids": torch.from_numpy(rows)}

    return workspace.tensors(f"ids-{material.name}-{part}-{T_max}-{len(vocabulary)}", cut)["ids"].long()


def _logits(network: TransformerNetwork, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch class"]:
    return network(nn.functional.embedding(ids, network.W_e) + network.W_p, (ids != UNK).sum(dim=1) - 1, None)


def _train(
    workspace: Workspace,
    key: str,
    config: TransformerConfig,
    material: Material,
    course: Course,
    hold: Hold,
    vocabulary: Vocabulary,
) -> dict[str, Tensor]:
    x = _ids(workspace, material, "train", vocabulary, config.T_max)
    y = torch.tensor([example.label for example in material.train], device=workspace.device)
    network = initial_network(config, len(vocabulary), workspace.seed).to(workspace.device)
    with torch.no_grad():
        network.W_e.mul_(course.word_scale)
        hold(network)
    run = _Run(workspace, key, network, _optimiser(network, course), course, hold, x, y)
    run.load(run.after(course.n_epochs))
    run.forget(course.n_epochs)
    return {name: weight.half().float() for name, weight in network.state_dict().items()}


@final
@dataclass(frozen=True, eq=False)
class _Run:
    """One training: what it changes, what it learns from, and the states it leaves on the workspace."""

    workspace: Workspace
    key: str
    network: TransformerNetwork
    optimiser: torch.optim.AdamW
    course: Course
    hold: Hold
    x: Int[Tensor, "text token"]
    y: Int[Tensor, "text"]

    def after(self, n_epochs: int) -> dict[str, Tensor]:
        """Weights and moments after so many epochs; asked from the last, so that none is done again."""
        if n_epochs == 0:
            return self.state()

        def work() -> dict[str, Tensor]:
            self.load(self.after(n_epochs - 1))
            self.epoch(n_epochs - 1)
            return self.state()

        state = self.workspace.tensors(f"{self.key}-after-{n_epochs}", work)
        self.forget(n_epochs - 1)
        return state

    def epoch(self, number: int) -> None:
        course, device = self.course, self.x.device
        # The order depends on seed and epoch alone, so a resumed run sees the batches an unbroken one would.
        order = torch.from_numpy(np.random.default_rng((self.workspace.seed, number)).permutation(len(self.x)))
        n_batches, total = ceil(len(self.x) / course.batch_size), torch.zeros((), device=device)
        for count, batch in enumerate(order.to(device).split(course.batch_size), start=number * n_batches + 1):
            for group in self.optimiser.param_groups:
                group["lr"] = course.rate(count / (course.n_epochs * n_batches + 1))
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = _logits(self.network, self.x[batch])
            loss = nn.functional.cross_entropy(logits.float(), self.y[batch])
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimiser.step()
            with torch.no_grad():
                self.hold(self.network)
            total += loss.detach()
        if not total.isfinite():
            raise BadInput(f"The loss is not a finite number in epoch {number + 1}; try a smaller learning_rate.")

    def state(self) -> dict[str, Tensor]:
        tensors = {f"weight.{name}": weight for name, weight in self.network.state_dict().items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"moment.{number}.{name}": tensor for name, tensor in moments.items()}
        return tensors

    def load(self, state: dict[str, Tensor]) -> None:
        weights = {name.removeprefix("weight."): t for name, t in state.items() if name.startswith("weight.")}
        self.network.load_state_dict(weights)
        kept = self.optimiser.state_dict()
        for name in (name for name in state if name.startswith("moment.")):
            _, number, field = name.split(".")
            kept["state"].setdefault(int(number), {})[field] = state[name]
        self.optimiser.load_state_dict(kept)

    def forget(self, n_epochs: int) -> None:
        """Later ones are there; a state is three times the size of its model."""
        (self.workspace.folder / "steps" / f"{self.key}-after-{n_epochs}.safetensors").unlink(missing_ok=True)


def _optimiser(network: TransformerNetwork, course: Course) -> torch.optim.AdamW:
    weights = list(network.parameters())
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": course.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=course.learning_rate, fused=True)
