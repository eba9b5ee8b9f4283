"""Parameter types that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hotbed.errors import UsageError
from hotbed.units import MIB, parse_size

if TYPE_CHECKING:
    from click import Context, Parameter


_SMALLEST = 2 * MIB
"""the least that torch takes from a device"""


class SizeType(click.ParamType[int]):
    """A size in bytes, written like 15GiB."""

    name = "size"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        try:
            size = value if isinstance(value, int) else parse_size(str(value))
        except UsageError as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        if size < _SMALLEST:
            self.fail(
                f"{value} is {size} bytes, less than any job needs; give a unit, like {value}GiB", param, ctx
            )
        return size


SIZE = SizeType()
