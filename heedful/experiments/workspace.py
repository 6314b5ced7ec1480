"""Where one experiment works: its folder, how large it may be, and what it has done so far."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, final

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import BadInput
from heedful.models import load
from heedful.models.single_layer import SingleLayer

Done = TypeVar("Done")


@final
@dataclass(frozen=True)
class Desk:
    """A folder of steps. A step that is there is not done again, so a run that was killed goes on where it was."""

    folder: Path
    quick: bool = True
    device: str = "cpu"
    seed: int = 0
    text: str | None = None
    """A user's own text, for the figures that explain one."""
    watch: Callable[[int, int], None] = field(default=lambda *_: None, compare=False)
    """Told how many parts are done, of how many."""

    @cached_property
    def model(self) -> SingleLayer:
        """The bundled model of the paper."""
        found = load("paper", self.device)
        assert isinstance(found, SingleLayer)
        return found

    def once(self, key: str, work: Callable[[], Done]) -> Done:
        """The result of a step, from its file if it was done before; it must be what JSON can hold."""
        path = self.folder / "steps" / f"{key}.json"
        if path.exists():
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise BadInput(f"{path} is damaged; delete it, and the step is done again.") from None
        # What goes on from the file must be what went on without it.
        text = json.dumps(work())
        write_whole(path, text)
        return json.loads(text)

    def tensors(self, key: str, work: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The same for a step that gives tensors, such as a trained model."""
        path = self.folder / "steps" / f"{key}.safetensors"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in work().items()}, fresh)
            fresh.replace(path)
        try:
            return load_file(path, device=self.device)
        except SafetensorError:
            raise BadInput(f"{path} is damaged; delete it, and the step is done again.") from None


def write_whole(path: Path, content: Any) -> None:
    """Writes text or bytes beside the file and moves them over it, so that a kill leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    fresh.replace(path)
