import io

import numpy as np
import pytest
from PIL import Image

from heedful.datasets.tiny_imagenet_16c import TinyImagenet16c
from heedful.document.rationale import Box
from heedful.errors import BadInput

FILE = "tiny_imagenet_16c/validation.parquet"


def jpeg(mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, (64, 48), 130).save(file, "JPEG")
    return file.getvalue()


def test_the_corners_of_the_box_belong_to_it(write):
    write(FILE, jpeg=[jpeg(), jpeg("L")], label=[3, 15], bbox=[[0, 31, 60, 40], [63, 0, 63, 47]])
    coloured, grey = TinyImagenet16c().examples("validation")
    assert (coloured.label, coloured.rationale) == (3, Box(0, 31, 61, 41, 64, 48))
    assert (grey.label, grey.rationale) == (15, Box(63, 0, 64, 48, 64, 48))
    assert coloured.text.mode == grey.text.mode == "RGB"
    assert np.asarray(grey.text).shape == (48, 64, 3)


@pytest.mark.parametrize(
    "columns", [{"jpeg": [b"no image"], "bbox": [[0, 1, 2, 3]]}, {"jpeg": [jpeg()], "bbox": [[0, 1]]}]
)
def test_a_row_without_a_picture_or_a_box_is_one_sentence(write, columns):
    write(FILE, label=[0], **columns)
    with pytest.raises(BadInput, match="Row 0 of validation.parquet needs a JPEG image and a box of four corners"):
        TinyImagenet16c().examples("validation")


def test_there_is_no_test_split(write):
    with pytest.raises(BadInput, match="has no test split; use train or validation"):
        TinyImagenet16c().examples("test")


def test_the_real_pictures_are_balanced_and_their_boxes_fill_half_of_them(needs):
    needs("tiny_imagenet_16c")
    examples = TinyImagenet16c().examples("validation")
    labels = [e.label for e in examples]
    assert [labels.count(label) for label in range(16)] == [50] * 16
    boxes = [e.rationale for e in examples]
    assert all(0 <= b.left < b.right <= b.width == 64 and 0 <= b.top < b.bottom <= b.height == 64 for b in boxes)
    share = np.mean([(b.right - b.left) * (b.bottom - b.top) / 4096 for b in boxes])
    assert 100 * share == pytest.approx(56.3, abs=0.05)
    centres = np.arange(4, 64, 8)
    inside = [
        ((b.left <= centres) & (centres < b.right)).sum() * ((b.top <= centres) & (centres < b.bottom)).sum()
        for b in boxes
    ]
    assert (inside.count(0), inside.count(64)) == (5, 106)
