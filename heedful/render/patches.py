"""Tinted patches of an image."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from heedful.document import SPECIAL
from heedful.explanation import Explanation
from heedful.render.palette import GREEN, RED, strengths


def patch_strengths(explanation: Explanation) -> Float[np.ndarray, "row column"]:
    """The strength of every patch in [−1, 1], on the grid of patches."""
    picture = explanation.document.picture
    assert picture is not None
    return strengths(explanation.scores)[_unit_of_patch(explanation)].reshape(picture.grid)


def _unit_of_patch(explanation: Explanation) -> Int[np.ndarray, "patch"]:
    """The unit of each patch: itself, or its region."""
    units = explanation.document.unit_of(explanation.unit)
    return units[units != SPECIAL]


def patches_view(explanation: Explanation, width: int = 176) -> dict[str, Any]:
    """What the macro `patches` draws: the image in grey, and a square per patch, green for, orange against."""
    picture = explanation.document.picture
    assert picture is not None
    rows, columns = picture.grid
    scores = explanation.scores[_unit_of_patch(explanation)].tolist()
    strengths_of_patches = patch_strengths(explanation).ravel().tolist()
    grey = np.repeat(picture.rgb.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)
    return {
        "method": explanation.method,
        "width": width,
        "height": round(width * rows / columns),
        "rows": rows,
        "columns": columns,
        "grey": png_data_url(grey),
        "patches": [
            {
                "row": place // columns,
                "column": place % columns,
                "colour": GREEN if strength > 0 else RED,
                "opacity": 0.75 * abs(strength),
                "score": score,
            }
            for place, (strength, score) in enumerate(zip(strengths_of_patches, scores, strict=True))
        ],
    }


def png_data_url(rgb: UInt8[np.ndarray, "height width 3"]) -> str:
    """The image as a data URL, encoded as PNG."""
    return f"data:image/png;base64,{b64encode(_png(rgb)).decode()}"


def _png(rgb: UInt8[np.ndarray, "height width 3"]) -> bytes:
    height, width, _ = rgb.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Every line starts with the number of its filter; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), rgb.reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
