"""The workspace of one experiment: its folder, its size, and its finished steps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import final

from torch import Tensor

from heedful.models.load import load
from heedful.models.single_layer import SingleLayer
from heedful.run_folder import Result, RunFolder


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

    @cached_property
    def model(self) -> SingleLayer:
        """The bundled model of the paper."""
        model = load("paper", self.device)
        assert isinstance(model, SingleLayer)
        return model

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, from its file if it was finished before; it must be representable in JSON."""
        return RunFolder(self.folder).step(key, work)

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The result of a step that gives tensors, such as the weights of a trained model."""
        return RunFolder(self.folder).tensors(key, work, self.device)
