"""A picture with its patches tinted."""

import struct
import zlib
from base64 import b64encode
from html import escape

import numpy as np
from jaxtyping import Float, Int, UInt8

from heedful.document import SPECIAL
from heedful.explanation import Explanation
from heedful.render.palette import GREEN, RED, strengths


def cells(explanation: Explanation) -> Float[np.ndarray, "row column"]:
    """Every patch's strength in [−1, 1], where the patch is."""
    picture = explanation.document.picture
    assert picture is not None
    return strengths(explanation.scores)[_unit_of_patch(explanation)].reshape(picture.grid)


def _unit_of_patch(explanation: Explanation) -> Int[np.ndarray, "patch"]:
    """The unit of each patch: itself, or its region."""
    units = explanation.document.unit_of(explanation.unit)
    return units[units != SPECIAL]


def tinted_svg(explanation: Explanation, width: int = 176) -> str:
    """The picture in grey, and over it a square a patch: green for, red against the target; no script, no link."""
    picture = explanation.document.picture
    assert picture is not None
    rows, columns = picture.grid
    height, units = round(width * rows / columns), _unit_of_patch(explanation)
    squares = []
    for row, line in enumerate(cells(explanation).tolist()):
        for column, strength in enumerate(line):
            ink, tint = GREEN if strength > 0 else RED, 0.75 * abs(strength)
            score = float(explanation.scores[units[row * columns + column]])
            squares.append(
                f'<rect x="{column}" y="{row}" width="1" height="1" fill="rgb{ink}" fill-opacity="{tint:.3f}">'
                f"<title>{row + 1},{column + 1}: {score:+.4g}</title></rect>"
            )
    grey = np.repeat(picture.rgb.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(explanation.method)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {columns} {rows}">'
        f'<image href="{data_link(grey)}" width="{columns}" height="{rows}" preserveAspectRatio="none"/>'
        f"{''.join(squares)}</svg>"
    )


def data_link(rgb: UInt8[np.ndarray, "height width 3"]) -> str:
    """The picture as a PNG inside a link."""
    return f"data:image/png;base64,{b64encode(_png(rgb)).decode()}"


def _png(rgb: UInt8[np.ndarray, "height width 3"]) -> bytes:
    height, width, _ = rgb.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Every line begins with its filter, 0: none.
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), rgb.reshape(height, -1)], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
