"""Packs a trained model into one small tar file for travel, and unpacks it.

    python -m studies.families.parcel pack runs/families/encoder encoder.tar
    python -m studies.families.parcel unpack encoder.tar runs/families/encoder

Weights travel in float16 and are float32 again afterwards; the trainers round them so that nothing is lost on the way.
The resume files in `state/` stay behind.
"""

import io
import sys
import tarfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save

from heedful.run_folder import write_atomically

WEIGHTS = "model.safetensors"


def pack(folder: Path, parcel: Path) -> None:
    """Packs the folder's own files into a tar file."""
    if not (folder / WEIGHTS).exists():
        raise FileNotFoundError(f"{folder} holds no {WEIGHTS}; train the model first.")

    def write(temporary: Path) -> None:
        with tarfile.open(temporary, "w") as tar:
            for path in sorted(path for path in folder.iterdir() if path.is_file()):
                content = _recast(path, torch.float16) if path.name == WEIGHTS else path.read_bytes()
                member = tarfile.TarInfo(path.name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))

    write_atomically(parcel, write)


def unpack(parcel: Path, folder: Path) -> None:
    """Unpacks the tar file into the folder, weights in single precision."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(parcel) as tar:
        tar.extractall(folder, filter="data")
    write_atomically(folder / WEIGHTS, _recast(folder / WEIGHTS, torch.float32))


def _recast(path: Path, dtype: torch.dtype) -> bytes:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return save({name: tensor.to(dtype) for name, tensor in tensors.items()}, metadata)


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        raise SystemExit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))


if __name__ == "__main__":
    main()
