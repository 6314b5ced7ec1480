"""The workspace of one experiment: its folder, its size, the model and text it explains, and its finished steps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, final

from torch import Tensor

from heedful.errors import BadInput, HeedfulError, Unsupported
from heedful.models.load import load
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.run_folder import Result, RunFolder

OWN_MODEL = "paper"
"""The model that is explained if the user names none."""


@final
@dataclass(frozen=True)
class Workspace:
    """The folder and settings of one experiment. Finished steps are read from their files, so a killed run resumes."""

    folder: Path
    quick: bool = True
    device: str = "cpu"
    seed: int = 0
    text: str | None = None
    """A user's own text, for the figures that explain one."""
    progress: Callable[[int, int], None] = field(default=lambda *_: None, compare=False)
    """Called with the number of finished parts and the total number of parts."""

    model_name: str = OWN_MODEL
    """The model that is explained, as `heedful.load` takes it."""
    word: str | None = None
    """The word of the text that a figure of one word is about; None for the strongest."""

    @cached_property
    def model(self) -> Recordable:
        """The model that is explained: any that reads texts and has attention and gradients."""
        model = load(self.model_name, self.device)
        if not isinstance(model, Recordable) or {"attention", "gradients"} - model.offers:
            reasons = " ".join(dict.fromkeys(model.withheld.values()))
            needed = f"The figures need a model with attention and gradients; {self.model_name!r} has none."
            raise BadInput(f"{needed} {reasons}".strip())
        try:
            model.encode("a text")
        except HeedfulError:
            raise BadInput(f"The figures explain texts, which {self.model_name!r} does not read.") from None
        return model

    @property
    def single_layer(self) -> SingleLayer:
        """The same model, for what holds for the paper's single layer alone."""
        if not isinstance(self.model, SingleLayer) or not self.is_single_layer:
            raise Unsupported(
                f"This is about the paper's single layer with two or more classes; {self.model_name!r} is another "
                "kind of model."
            )
        return self.model

    @property
    def is_single_layer(self) -> bool:
        """Whether the model is of the paper's kind, so that its theorems apply."""
        return isinstance(self.model, SingleLayer) and len(self.model.classes) > 1

    @property
    def foreign(self) -> bool:
        """Whether a user's model is explained instead of the bundled one."""
        return self.model_name != OWN_MODEL

    @property
    def target(self) -> Literal["positive"] | None:
        """The class that is explained: "positive" if the model has it, or else the predicted one."""
        return "positive" if "positive" in self.model.classes else None

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, from its file if it was finished before; it must be representable in JSON."""
        return RunFolder(self.folder).step(key, work)

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The result of a step that gives tensors, such as the weights of a trained model."""
        return RunFolder(self.folder).tensors(key, work, self.device)
