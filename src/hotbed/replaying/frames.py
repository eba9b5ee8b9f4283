"""Frames between a replay's host and its worker: a big-endian u32 length, JSON of that length, then raw bytes.

The JSON's `blob_bytes` says how many raw bytes follow. Stdlib only: the worker loads this file by its path.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket


def read_exactly(connection: socket.socket, count: int) -> bytes:
    """`count` bytes, or fewer at the end of the stream."""
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """The next frame, None when the other side is gone."""
    head = read_exactly(connection, 4)
    if len(head) < 4:
        return None
    message = json.loads(read_exactly(connection, struct.unpack(">I", head)[0]))
    return message, read_exactly(connection, message.get("blob_bytes", 0))


def send(connection: socket.socket, message: dict[str, Any], blob: bytes = b"") -> None:
    """Sends one frame, and waits until all of it is on its way."""
    body = json.dumps({**message, "blob_bytes": len(blob)}).encode()
    connection.sendall(struct.pack(">I", len(body)) + body + blob)
