"""Parameter types that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hotbed.errors import UsageError
from hotbed.units import parse_size

if TYPE_CHECKING:
    from click import Context, Parameter


class SizeType(click.ParamType[int]):
    """A size in bytes, written like 15GiB."""

    name = "size"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_size(str(value))
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


SIZE = SizeType()
