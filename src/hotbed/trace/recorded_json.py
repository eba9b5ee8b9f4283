"""Recorded as the JSON of an .hbt chunk, and back. Steps, which may be a million, are rows; the rest are objects."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

import msgspec

from hotbed.trace.columns import DamagedError
from hotbed.trace.recorded import Recorded, Step

_STEP: Final = tuple(field.name for field in fields(Step))


def recorded_json(recorded: Recorded) -> bytes:
    """UTF-8 JSON of `recorded`."""
    content: dict[str, Any] = msgspec.to_builtins(replace(recorded, steps=()))
    content["steps"] = {
        "fields": _STEP,
        "rows": [[getattr(step, name) for name in _STEP] for step in recorded.steps],
    }
    return msgspec.json.encode(content)


def recorded_from_json(payload: bytes) -> Recorded:
    """What recorded_json wrote; fields that this version does not know are dropped. Raises DamagedError."""
    try:
        content = msgspec.json.decode(payload, type=dict[str, Any])
        steps = msgspec.convert(content.pop("steps"), _Rows)
        rest = msgspec.convert(content, Recorded)
        rows = [dict(zip(steps.fields, row, strict=True)) for row in steps.rows]
        return replace(rest, steps=tuple(msgspec.convert(rows, list[Step])))
    except (msgspec.MsgspecError, KeyError, ValueError) as error:
        raise DamagedError(f"the recorder's rows: {error}") from None


class _Rows(msgspec.Struct):
    fields: list[str]
    rows: list[list[Any]]
