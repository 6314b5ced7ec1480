"""The workspace of one experiment: its folder, its size, and its finished steps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import final

from torch import Tensor

from heedful.errors import BadInput
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

    model_name: str = "paper"
    """The single-layer model that is explained: the bundled one, or a file or folder of `heedful train`."""

    @cached_property
    def model(self) -> SingleLayer:
        """The single-layer model that is explained."""
        model = load(self.model_name, self.device)
        if not isinstance(model, SingleLayer) or len(model.classes) < 2:
            raise BadInput(f"The experiments explain single-layer models; {self.model_name!r} is not one.")
        return model

    def step(self, key: str, work: Callable[[], Result]) -> Result:
        """The result of a step, from its file if it was finished before; it must be representable in JSON."""
        return RunFolder(self.folder).step(key, work)

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The result of a step that gives tensors, such as the weights of a trained model."""
        return RunFolder(self.folder).tensors(key, work, self.device)
