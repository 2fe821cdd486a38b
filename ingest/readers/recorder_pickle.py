"""Pickles of plain data, read without running anything that they say.

Only the opcodes that make dicts, lists, tuples and plain values are known here: a pickle that
names a class or function, calls one or asks for anything outside itself is refused.
"""

import io
import pickle
import struct
from typing import Final, NoReturn

LONGEST: Final = 1 << 28  # bytes; ring buffers of twenty thousand entries take a tenth of it
DATA: Final = (
    b"\x80\x95(.0120}])tl\x85\x86\x87"  # PROTO FRAME MARK STOP POP POP_MARK DUP, empty and tuples
    b"dsuaeN\x88\x89IKMJL\x8a\x8bFG"  # containers' items, None, truth, numbers
    b"VX\x8c\x8dSTUBC\x8e"  # texts and bytes
    b"pqrghj\x94"  # memo
)
BROKEN: Final = (
    EOFError,
    struct.error,
    pickle.UnpicklingError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
)


class RefusedError(Exception):
    """The pickle holds more than data."""


class _Opcodes(dict[int, object]):
    """The opcodes of data; any other is refused."""

    def __missing__(self, code: int) -> NoReturn:
        raise RefusedError(f"opcode {bytes([code])!r}")


class _Plain(pickle._Unpickler):
    """The standard library's own reader, in Python, with the opcodes of data alone."""

    dispatch = _Opcodes(  # type: ignore[assignment]  # its values are methods of the parent
        {code: pickle._Unpickler.dispatch[code] for code in DATA}
    )

    def find_class(self, module: str, name: str) -> NoReturn:
        raise RefusedError(f"{module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise RefusedError("a persistent id")

    def rest(self) -> object:
        """Give the outermost object with all that was read into it before the pickle broke."""
        items = getattr(self, "stack", [])
        for outer in reversed(getattr(self, "metastack", [])):
            _put(outer[-1] if outer else None, items)
            items = outer
        return items[0] if items else None


def load(content: bytes) -> tuple[object, str]:
    """Give what a pickle holds, and what broke it: "" for a whole one. Raises RefusedError."""
    if len(content) > LONGEST:
        raise RefusedError(f"more than {LONGEST >> 20} MiB")
    reader = _Plain(io.BytesIO(content))
    try:
        return reader.load(), ""
    except BROKEN as error:
        return reader.rest(), str(error) or type(error).__name__


def _put(into: object, items: list[object]) -> None:
    if isinstance(into, dict):
        pairs = zip(items[::2], items[1::2], strict=False)
        into.update({key: value for key, value in pairs if isinstance(key, str)})
    elif isinstance(into, list):
        into.extend(items)
