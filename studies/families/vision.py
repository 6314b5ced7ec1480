"""Trains the vision model: a small ViT that classifies 16 classes of Tiny ImageNet.

    python -m studies.families.vision --data DIR --out runs/families/vision [--device cuda] [--quick]

8000 pictures are few for a model without convolutions (Dosovitskiy et al., 2021, arXiv:2010.11929), so every batch is
cropped, mirrored, recoloured and mixed anew. The 800 validation pictures choose nothing: the last epoch is kept.
"""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import Image
from pyarrow import parquet
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

from heedful.models.training_loop import Schedule, seeded
from studies.families.augmentation import Pictures, cropped, mixed, recoloured
from studies.families.training import (
    TrainingTask,
    describe_files,
    parse_arguments,
    read_columns,
    save_model,
    say,
    train_model,
    write_card,
)

FILES = ("tiny_imagenet_16c/train.parquet", "tiny_imagenet_16c/validation.parquet")


@final
@dataclass(frozen=True)
class Settings:
    """The size of the model and how to train it; `most_pictures` limits each file for a quick run."""

    size: int = 64
    patch: int = 8
    n_layers: int = 6
    n_heads: int = 4
    width: int = 192
    dropout: float = 0.1
    smallest_crop: float = 0.3
    recolouring: float = 0.4
    mixed_share: float = 0.8
    smoothing: float = 0.1
    schedule: Schedule = field(
        default=Schedule(n_epochs=300, batch_size=256, learning_rate=1e-3, weight_decay=0.05, warmup_share=0.05)
    )
    most_pictures: int | None = None
    seed: int = 0
    device: str = "cpu"


QUICK = Settings(
    patch=16,
    n_layers=2,
    n_heads=2,
    width=16,
    schedule=Schedule(n_epochs=2, batch_size=8, learning_rate=1e-3, warmup_share=0.05),
    most_pictures=64,
)


def train(data: Path, out: Path, settings: Settings) -> dict[str, object]:
    """Trains, or resumes; leaves model, image processor and card in the folder, and returns the figures of the card."""
    names = class_names(data / FILES[0])
    columns = {name: read_columns(data / name, "jpeg", "label", most=settings.most_pictures) for name in FILES}
    files = describe_files(columns)
    (pictures, labels), (held, held_labels) = (unfold(*columns[name], settings) for name in FILES)
    say(f"vision: {len(pictures)} pictures to learn, {len(held)} to validate with")
    with seeded(settings.seed):
        model = ViTForImageClassification(configuration(settings, names)).to(settings.device)

    def loss(batch: Int[Tensor, "batch"]) -> Tensor:
        seen = recoloured(cropped(scaled(pictures[batch]), settings.smallest_crop), settings.recolouring)
        wanted = one_hot(labels[batch], len(names)).float()
        if torch.rand(()) < settings.mixed_share:
            seen, wanted = mixed(seen, wanted)
        return cross_entropy(model(seen).logits.float(), wanted, label_smoothing=settings.smoothing)

    def accuracy() -> float:
        guesses = torch.cat([model(scaled(part)).logits.argmax(dim=1) for part in held.split(200)])
        return (guesses == held_labels).float().mean().item()

    task = TrainingTask(
        name="vision",
        model=model,
        n_examples=len(pictures),
        loss=loss,
        validate=accuracy,
        seed=settings.seed,
        settings={"data": files, **asdict(settings)},
    )
    epochs = train_model(settings.schedule, task, out)

    # Mean and deviation ½ bring 0 … 255 to −1 … 1, as `scaled` does.
    processor = ViTImageProcessor(size={"height": settings.size, "width": settings.size})
    save_model(model, processor, out)
    with torch.inference_mode():
        figures = {"n_validation": len(held), "validation_accuracy": accuracy()}
    write_card(out, files, settings, figures, epochs)
    return figures


def class_names(path: Path) -> list[str]:
    """The names that the file gives its classes, in the order of their numbers."""
    metadata = parquet.read_schema(path).metadata or {}
    if b"classes" not in metadata:
        raise ValueError(f"{path} must name its classes in the schema's metadata: classes = name|name|….")
    return metadata[b"classes"].decode().split("|")


def unfold(
    files: Sequence[bytes], labels: Sequence[int], settings: Settings
) -> tuple[UInt8[Tensor, "batch channel height width"], Int[Tensor, "batch"]]:
    """All pictures in colour, on the device, with their labels."""
    pictures = np.stack([np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files])
    if pictures.shape[1:3] != (settings.size, settings.size):
        raise ValueError(f"The pictures are {pictures.shape[1:3]}; {settings.size} × {settings.size} is wanted.")
    channels_first = torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous()
    return channels_first.to(settings.device), torch.tensor(labels, device=settings.device)


def scaled(pictures: UInt8[Tensor, "batch channel height width"]) -> Pictures:
    return pictures.float() / 127.5 - 1


def configuration(settings: Settings, names: list[str]) -> ViTConfig:
    return ViTConfig(
        image_size=settings.size,
        patch_size=settings.patch,
        hidden_size=settings.width,
        num_hidden_layers=settings.n_layers,
        num_attention_heads=settings.n_heads,
        intermediate_size=4 * settings.width,
        hidden_dropout_prob=settings.dropout,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )


def main() -> None:
    arguments = parse_arguments(__doc__)
    train(arguments.data, arguments.out, replace(QUICK if arguments.quick else Settings(), device=arguments.device))


if __name__ == "__main__":
    main()
