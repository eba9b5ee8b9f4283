"""Columns of numbers as one compressed text that the page unpacks: bytes of equal weight together, deflate, base64."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

# Numbers of JavaScript are exact up to here; what a damaged file holds beyond is cut.
_LARGEST: Final = (1 << 53) - 1
_LEVEL: Final = 9


def packed(header: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]]) -> str:
    """`header` (plain containers) and `columns` (whole numbers from -1 up) as base64 text.

    Unpacked: u32 length of the JSON, the JSON, then the columns. Each is stored plus one, its lowest bytes first, then the
    next; header["columns"] lists [name, length, bytes of a number].
    """
    planes = [_planes(np.asarray(values)) for values in columns.values()]
    listed = [
        [name, len(values), len(parts)] for (name, values), parts in zip(columns.items(), planes, strict=True)
    ]
    text = json.dumps({**header, "columns": listed}, separators=(",", ":")).encode()
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    pieces = [compressor.compress(struct.pack("<I", len(text)) + text)]
    pieces += [compressor.compress(plane.tobytes()) for parts in planes for plane in parts]
    return base64.b64encode(b"".join([*pieces, compressor.flush()])).decode()


def _planes(values: npt.NDArray[Any]) -> list[npt.NDArray[np.uint8]]:
    whole = values.astype(np.int64).clip(-1, _LARGEST - 1) + 1
    highest = int(whole.max(initial=0))
    width = max(1, -(-highest.bit_length() // 8))
    return [((whole >> (8 * place)) & 255).astype(np.uint8) for place in range(width)]
