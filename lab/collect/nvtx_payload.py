"""Payloads that a program described itself, as JSON with the names of their fields."""

import json
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.collect.nvtx_chunks import EXTENDED, Chunks, Entry, Schema, Slots

# Numbers of the types of NVTX; those that are missing here are not told.
_TYPES: Final = {
    1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<i8", 8: "<u8", 9: "<i8",
    10: "<u8", 11: "i1", 12: "u1", 13: "<i2", 14: "<u2", 15: "<i4", 16: "<u4", 17: "<i8",
    18: "<u8", 19: "<f4", 20: "<f8", 22: "<u8", 23: "<u8", 32: "u1", 42: "<f2", 43: "<f4",
    44: "<f8", 67: "<u8", 68: "<u4", 69: "<u4", 70: "<u8", 71: "<u4", 72: "<u8", 73: "<u4",
    74: "<u8", 80: "<u8",
}  # fmt: skip
_UTF32: Final = 78
_BYTES: Final = 32
_REGISTERED: Final = 80
_POINTER: Final = 1 << 1
_ARRAY: Final = 7 << 4
_FIXED, _BY_LENGTH = 1 << 4, 3 << 4
_OWN_TYPES: Final = 1 << 24  # ids of schemas begin here
_DEEPEST: Final = 4


def as_json(found: Chunks, slots: Slots, blobs: pa.Array) -> pa.Array:
    """Give a JSON object for each row with a described payload, null for all others.

    Rows of one domain, schema and size have one layout, so they are written together.
    """
    rows = np.flatnonzero(slots["payload"] == EXTENDED)
    said: npt.NDArray[np.object_] = np.full(len(slots), None, object)
    sizes = np.diff(np.frombuffer(blobs.buffers()[1], np.int64)[: len(blobs) + 1])[rows]
    keys = np.stack([slots["domain"][rows], slots["value"][rows], sizes], 1, dtype=np.uint64,
                    casting="unsafe")  # fmt: skip
    layouts, which = np.unique(keys, axis=0, return_inverse=True)
    for number, (domain, schema, size) in enumerate(layouts.tolist()):
        here = rows[which.reshape(-1) == number]
        layout = _layout(found, domain, found.schemas.get((domain, schema)), size, _DEEPEST)
        if layout is not None and layout.names and layout.itemsize <= size:
            raw = np.frombuffer(b"".join(blobs.take(pa.array(here)).to_pylist()), np.uint8)
            values = np.ascontiguousarray(raw.reshape(len(here), size)[:, : layout.itemsize])
            texts = _object(found, values.view(layout).reshape(len(here)))
            said[here] = texts.to_numpy(zero_copy_only=False)
    return pa.array(said, pa.string(), from_pandas=True)


def _layout(
    found: Chunks, domain: int, schema: Schema | None, size: int, deep: int
) -> np.dtype[Any] | None:
    """Give the layout of payloads of `size` bytes; None where it cannot be told."""
    if schema is None or not deep:
        return None
    fields: list[tuple[str, Any, int]] = []
    end = 0
    for place, entry in enumerate(schema.entries):
        kind = _type(found, domain, entry, deep)
        if kind is None or entry.flags & _POINTER:
            continue
        at = (
            entry.offset
            if entry.offset or not place
            else -(-end // kind.alignment) * kind.alignment
        )
        count = _count(entry, kind, at, size)
        if count is None:
            continue
        if isinstance(count, int):
            kind = _several(entry, kind, count)
        end = at + kind.itemsize
        fields.append((_field_name(entry, place, fields), kind, at))
    inside = [f for f in fields if f[2] + f[1].itemsize <= size]
    used = max((at + kind.itemsize for _, kind, at in inside), default=0)
    names, kinds, offsets = zip(*inside, strict=True) if inside else ((), (), ())
    return np.dtype({
        "names": list(names), "formats": list(kinds), "offsets": list(offsets),
        "itemsize": max(min(schema.size, size), used),
    })  # fmt: skip


def _type(found: Chunks, domain: int, entry: Entry, deep: int) -> np.dtype[Any] | None:
    if entry.type == _UTF32:
        return np.dtype("<u4")
    if entry.type >= _OWN_TYPES:
        other = found.schemas.get((domain, entry.type))
        return _layout(found, domain, other, other.size if other else 0, deep - 1)
    return np.dtype(_TYPES[entry.type]) if entry.type in _TYPES else None


def _count(entry: Entry, kind: np.dtype[Any], at: int, size: int) -> int | bool | None:
    """Give how many values there are: False for one alone, None where that is not known."""
    array = entry.flags & _ARRAY
    if array == _FIXED:
        return int(entry.detail)
    if array == _BY_LENGTH:  # the last field; what is left of the payload
        return max(size - at, 0) // kind.itemsize
    return None if array else False


def _several(entry: Entry, kind: np.dtype[Any], count: int) -> np.dtype[Any]:
    if count is False:
        return kind
    if entry.type == _UTF32:
        return np.dtype(f"<U{count}")
    return np.dtype(f"S{count}") if entry.type == _BYTES else np.dtype((kind, count))


def _field_name(entry: Entry, place: int, fields: list[tuple[str, Any, int]]) -> str:
    name = entry.name or ("value" if not place else f"value {place}")
    mark = "\0registered" if entry.type == _REGISTERED else ""
    taken = {n for n, _, _ in fields}
    return name + mark if name + mark not in taken else f"{name} {place}{mark}"


def _object(found: Chunks, values: npt.NDArray[Any]) -> pa.Array:
    """Give the JSON object of each row of a structured array."""
    parts: list[Any] = []
    for name in values.dtype.names or ():
        shown, _, registered = name.partition("\0")
        text = _strings(found, values[name]) if registered else _texts(found, values[name])
        parts += [("," if parts else "{") + _quoted(shown) + ":", text]
    return pc.binary_join_element_wise(*parts, "}", "")


def _texts(found: Chunks, column: npt.NDArray[Any]) -> pa.Array:
    if column.dtype.names:
        alone = column.dtype.names[0] if len(column.dtype.names) == 1 else ""
        return _texts(found, column[alone]) if alone else _object(found, column)
    if column.ndim > 1:
        cells = [_texts(found, column[:, i]) for i in range(column.shape[1])]
        inner = pc.binary_join_element_wise(*cells, ",") if cells else pa.repeat("", len(column))
        return pc.binary_join_element_wise("[", inner, "]", "")
    if column.dtype.kind in "US":
        text = column.astype(str) if column.dtype.kind == "U" else np.char.decode(column, "latin-1")
        return pa.array([_quoted(one) for one in text.tolist()], pa.string())
    plain = pa.array(np.ascontiguousarray(column).astype(column.dtype.newbyteorder("=")))
    if column.dtype.kind == "f":
        finite = pa.array(np.isfinite(column))
        return pc.if_else(finite, plain.cast(pa.float64()).cast(pa.string()), "null")
    return plain.cast(pa.string())


def _strings(found: Chunks, column: npt.NDArray[Any]) -> pa.Array:
    coded = pa.array(np.ascontiguousarray(column)).dictionary_encode()
    known = [_quoted(found.strings.get(i, "")) for i in coded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(coded.indices)


@lru_cache(maxsize=1 << 12)
def _quoted(text: str) -> str:
    return json.dumps(text)
