"""The dictionaries that come with the package, a file and its card for each; one has the name of its bundled model."""

from pathlib import Path

_FOLDER = Path(__file__).parent


def bundled() -> dict[str, Path]:
    """The files of the bundled dictionaries, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.safetensors"))}
