"""Reads pickles that hold nothing but containers, numbers and strings; any opcode that could do more is refused."""

from __future__ import annotations

import ast
import struct
from typing import TYPE_CHECKING, Any, Final

from hotbed.trace.refusals import UNWANTED, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

    from hotbed.errors import TraceError

# Longest text line of protocol 0: a number, a memo index or an escaped string.
_LINE_LIMIT: Final = 1 << 24
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1


class _Mark:
    """Marks the start of a run of items on the stack; only MARK pushes it and no container may hold it."""


_MARK: Final = _Mark()


def read_plain_pickle(data: bytes | bytearray | mmap) -> Any:
    """The value that the pickle in `data` holds: dict, list, tuple, int, float, str, bytes, bool or None.

    Understands protocols 0 to 5. Integers fit 64 bits, signed or unsigned. Bytes behind STOP are ignored.
    Raises TraceError for pickles that want anything else (the import or the opcode is named), that are cut
    short or that are not pickles. Never imports and never calls: there is no code here that could.
    """
    return _Machine(data).run()


class _Machine:
    """The pickle machine: a stack, a memo and a position in the data."""

    def __init__(self, data: bytes | bytearray | mmap) -> None:
        self.data = data
        self.position = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        handlers = _HANDLERS
        try:
            while True:
                code = self.data[self.position]
                self.position += 1
                handler = handlers.get(code)
                if handler is None:
                    if code == ord("."):
                        return self.pop()
                    raise self.refuse(code)
                handler(self)
        except (IndexError, struct.error):
            raise self.refusal().cut_short() from None
        except (ValueError, SyntaxError, KeyError, TypeError):
            raise self.refusal().damaged() from None

    def refusal(self) -> Refusal:
        return Refusal(self.position, len(self.data))

    def refuse(self, code: int) -> TraceError:
        if code not in UNWANTED:
            return self.refusal().not_pickle(code)
        return self.refusal().unwanted(code, self.wanted_global(code))

    def wanted_global(self, code: int) -> str:
        parts: list[str] = []
        if UNWANTED[code] in ("GLOBAL", "INST"):
            parts = [self.line().decode("utf-8", "replace") for _ in range(2)]
        elif UNWANTED[code] == "STACK_GLOBAL":
            parts = [part for part in self.stack[-2:] if type(part) is str]
        return ".".join(part[:200] for part in parts)

    def take(self, length: int) -> bytes:
        start = self.position
        if length > len(self.data) - start:
            raise IndexError
        self.position = start + length
        return bytes(self.data[start : self.position])

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.position, self.position + _LINE_LIMIT)
        if end < 0:
            raise IndexError
        text = bytes(self.data[self.position : end])
        self.position = end + 1
        return text

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError
        return value

    def top(self) -> Any:
        value = self.stack[-1]
        if value is _MARK:
            raise ValueError
        return value

    def pop_to_mark(self) -> list[Any]:
        stack = self.stack
        # Snapshots nest a few levels deep, so the newest mark is near the end.
        index = len(stack) - 1
        while stack[index] is not _MARK:
            index -= 1
            if index < 0:
                raise IndexError
        items = stack[index + 1 :]
        del stack[index:]
        return items

    def push_int(self, value: int) -> None:
        if not _INT_MIN <= value <= _INT_MAX:
            raise ValueError
        self.stack.append(value)

    def long(self, width: int) -> None:
        length = self.unsigned(width)
        if length > 16:
            raise ValueError
        self.push_int(int.from_bytes(self.take(length), "little", signed=True))

    def text_int(self) -> None:
        line = self.line()
        if line in (b"00", b"01"):
            self.stack.append(line == b"01")
        elif len(line) > 24:
            raise ValueError
        else:
            self.push_int(int(line.rstrip(b"L")))

    def text_string(self) -> None:
        line = self.line().strip()
        if line[:1] not in (b'"', b"'"):
            raise ValueError
        # Protocol 0 wrote the repr of a byte string; literal_eval builds constants only.
        value = ast.literal_eval("b" + line.decode("ascii"))
        self.stack.append(value.decode("latin-1"))

    def string(self, width: int) -> None:
        self.stack.append(str(self.take(self.unsigned(width)), "utf-8", "surrogatepass"))

    def byte_string(self, width: int) -> None:
        self.stack.append(self.take(self.unsigned(width)))

    def old_string(self, width: int) -> None:
        self.stack.append(self.take(self.unsigned(width)).decode("latin-1"))

    def tuple_of(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self.stack.append(tuple(reversed(items)))

    def append(self) -> None:
        value = self.pop()
        self.list_at_top().append(value)

    def appends(self) -> None:
        items = self.pop_to_mark()
        self.list_at_top().extend(items)

    def list_at_top(self) -> list[Any]:
        target = self.top()
        if type(target) is not list:
            raise ValueError
        return target

    def set_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.update(self.top(), [key, value])

    def set_items(self) -> None:
        items = self.pop_to_mark()
        self.update(self.top(), items)

    def update(self, target: Any, items: list[Any]) -> None:
        if type(target) is not dict or len(items) % 2:
            raise ValueError
        # Only flat keys: hashing a deep tuple would recurse.
        if any(type(key) not in _KEY_TYPES for key in items[::2]):
            raise ValueError
        target.update(zip(items[::2], items[1::2], strict=True))

    def build_dict(self) -> None:
        items = self.pop_to_mark()
        value: dict[Any, Any] = {}
        self.update(value, items)
        self.stack.append(value)

    def put(self, index: int) -> None:
        if index < 0:
            raise ValueError
        self.memo[index] = self.top()

    def get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def expect_protocol(self) -> None:
        if self.unsigned(1) > 5:
            raise self.refusal().protocol()

    def pop_any(self) -> None:
        self.stack.pop()


_KEY_TYPES: Final = frozenset({str, int, float, bool, bytes, type(None)})


def _handlers() -> dict[int, Callable[[_Machine], None]]:
    """Instruction byte → what it does, for every instruction that builds plain values."""
    table: dict[bytes, Callable[[_Machine], None]] = {
        b"\x80": _Machine.expect_protocol,
        b"\x95": lambda m: void(m.take(8)),
        b"(": lambda m: m.stack.append(_MARK),
        b"0": _Machine.pop_any,
        b"1": lambda m: void(m.pop_to_mark()),
        b"2": lambda m: m.stack.append(m.top()),
        b"N": lambda m: m.stack.append(None),
        b"\x88": lambda m: m.stack.append(True),
        b"\x89": lambda m: m.stack.append(False),
        b"I": _Machine.text_int,
        b"L": _Machine.text_int,
        b"J": lambda m: m.stack.append(int.from_bytes(m.take(4), "little", signed=True)),
        b"K": lambda m: m.stack.append(m.unsigned(1)),
        b"M": lambda m: m.stack.append(m.unsigned(2)),
        b"\x8a": lambda m: m.long(1),
        b"\x8b": lambda m: m.long(4),
        b"F": lambda m: m.stack.append(float(m.line())),
        b"G": lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0]),
        b"S": _Machine.text_string,
        b"T": lambda m: m.old_string(4),
        b"U": lambda m: m.old_string(1),
        b"V": lambda m: m.stack.append(m.line().decode("raw-unicode-escape")),
        b"X": lambda m: m.string(4),
        b"\x8c": lambda m: m.string(1),
        b"\x8d": lambda m: m.string(8),
        b"B": lambda m: m.byte_string(4),
        b"C": lambda m: m.byte_string(1),
        b"\x8e": lambda m: m.byte_string(8),
        b"\x96": lambda m: m.byte_string(8),
        b"]": lambda m: m.stack.append([]),
        b"l": lambda m: m.stack.append(m.pop_to_mark()),
        b")": lambda m: m.stack.append(()),
        b"t": lambda m: m.stack.append(tuple(m.pop_to_mark())),
        b"\x85": lambda m: m.tuple_of(1),
        b"\x86": lambda m: m.tuple_of(2),
        b"\x87": lambda m: m.tuple_of(3),
        b"}": lambda m: m.stack.append({}),
        b"d": _Machine.build_dict,
        b"s": _Machine.set_item,
        b"u": _Machine.set_items,
        b"a": _Machine.append,
        b"e": _Machine.appends,
        b"g": lambda m: m.get(int(m.line())),
        b"h": lambda m: m.get(m.unsigned(1)),
        b"j": lambda m: m.get(m.unsigned(4)),
        b"p": lambda m: m.put(int(m.line())),
        b"q": lambda m: m.put(m.unsigned(1)),
        b"r": lambda m: m.put(m.unsigned(4)),
        b"\x94": lambda m: m.put(len(m.memo)),
    }
    return {code[0]: handler for code, handler in table.items()}


def void(_: object) -> None:
    """Drops a value that only had to be consumed."""


_HANDLERS: Final = _handlers()
