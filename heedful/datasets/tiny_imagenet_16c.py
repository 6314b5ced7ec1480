"""Sixteen classes of Tiny ImageNet with bounding boxes (Deng et al., 2009; Le & Yang, 2015)."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.source import check_labels, in_folder, read_parquet
from heedful.document.rationale import Box
from heedful.errors import BadInput, MissingPackage


@final
@dataclass(frozen=True)
class TinyImagenet16c(Dataset):
    """Images of 64 × 64 pixels in 16 classes, with boxes: 8,000 to train, 800 to validate.

    The box around the object is the rationale. Its published corners are inclusive; 17 boxes are one pixel wide, at the
    edge of the image. The 55 grey images are converted to RGB. No public parquet copy has the boxes, so a local folder
    is required, with the columns jpeg, label and bbox (x_min, y_min, x_max, y_max).
    """

    name: ClassVar[str] = "tiny-imagenet-16c"
    classes: ClassVar[tuple[str, ...]] = (
        *("goldfish", "tabby", "golden retriever", "school bus", "bullet train", "espresso", "banana", "monarch"),
        *("sports car", "African elephant", "king penguin", "teapot", "pizza", "lemon", "ladybug", "tarantula"),
    )

    def examples(self, split: Split) -> Sequence[Example]:
        if split == "test":
            raise BadInput("tiny-imagenet-16c has no test split; use train or validation.")
        path = in_folder(f"tiny_imagenet_16c/{split}.parquet")
        if path is None:
            raise BadInput(
                "Tiny ImageNet with its boxes cannot be downloaded; "
                f"set HEEDFUL_DATA to a folder with tiny_imagenet_16c/{split}.parquet."
            )
        rows = read_parquet(path, {"jpeg": bytes, "label": int, "bbox": list})
        check_labels(path, [row["label"] for row in rows], self.classes)
        examples = []
        for number, row in enumerate(rows):
            picture, corners = _opened(row["jpeg"]), row["bbox"]
            if picture is None or len(corners) != 4 or None in corners:
                raise BadInput(f"Row {number} of {path.name} needs a JPEG image and a box of four corners.")
            left, top, right, bottom = corners
            box = Box(left, top, right + 1, bottom + 1, picture.width, picture.height)
            examples.append(Example(picture, row["label"], box))
        return examples


def _opened(jpeg: bytes) -> Any:
    """The image, or None if the bytes are not an image."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackage("Reading images needs pillow; run `make install`, or pip install pillow.") from error
    try:
        with Image.open(io.BytesIO(jpeg)) as image:
            return image.convert("RGB")
    except OSError:
        return None
