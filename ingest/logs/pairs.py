"""Figures that a line names: `key: value`, `key = value` or JSON, whatever their number and order.

Versions of engines add, drop and move fields. So a line is cut at its commas, and each piece that
names a figure is kept; what is asked for is then taken by name.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import number, samples
from teller.ingest.logs.meaning import whole

_PAIR: Final = (
    r"""^(?:.*[:.\]{]\s*)?["'\\]*(?P<key>#?[A-Za-z][\w #()/-]*?)["'\\]*\s*[:=]\s*["'\\]*"""
    r"""(?P<value>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|True|False|true|false)\s*"""
    r"""(?P<unit>%|[A-Za-z][A-Za-z/]*)?["'\\\s}.)]*$"""
)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Figures of lines, in order: `row` counts the lines from 0, `value` of True is 1."""

    lines: pa.Table
    row: pa.Array
    key: pa.Array
    unit: pa.Array
    value: pa.Array
    params: pa.Array  # a line's figures as a JSON object; keys carry their units: "Running (reqs)"

    def samples(self, name: str, *keys: str, unit: str | None = None, scale: float = 1.0,
                text: pa.Array | str = "") -> pa.Table:  # fmt: skip
        """Give a sample for each figure of one of these keys; `text` has a value a line, or one.

        A figure in percent is given as a ratio. With `unit`, a figure without it is left out: in a
        line that was cut, the last figure may be cut too.
        """
        mask = pc.is_in(self.key, pa.array(keys, pa.string()))
        if unit is not None:
            mask = pc.and_(mask, pc.equal(self.unit, unit))
        rows = self.row.filter(mask)
        value = pc.multiply(self.value.filter(mask), scale)
        percent = pc.equal(self.unit.filter(mask), "%")
        value = pc.if_else(percent, pc.round(pc.divide(value, 100), 6), value)
        said = text if isinstance(text, str) else text.take(rows)
        return samples(name, self.lines.take(rows), value=value, text=said)

    def of(self, *keys: str) -> pa.Array:
        """Give a line's figure of the first of these keys that it has, or null."""
        found = np.full(self.lines.num_rows, np.nan)
        for key in reversed(keys):
            mask = pc.equal(self.key, key)
            found[self.row.filter(mask).to_numpy()] = self.value.filter(mask).to_numpy()
        return pa.array(found, from_pandas=True)


def pairs(lines: pa.Table, separator: str = r",\s+") -> Pairs:
    """Read the named figures of lines; `separator` is a pattern."""
    cut = whole(pc.split_pattern_regex(lines["text"], separator))
    pieces = cut.flatten().dictionary_encode()  # most pieces come again: "Waiting: 0 reqs"
    read = pc.extract_regex(pieces.dictionary, _PAIR)
    key, text, unit = (pc.struct_field(read, name) for name in ("key", "value", "unit"))
    place = pieces.indices
    good = read.is_valid().take(place)
    place, row = place.filter(good), pc.list_parent_indices(cut).filter(good)
    lower = pc.utf8_lower(text)
    truth = pc.if_else(
        pc.equal(lower, "true"), 1.0, pc.if_else(pc.equal(lower, "false"), 0.0, None)
    )
    value = pc.coalesce(number(text), truth.cast(pa.float64()))
    label = pc.if_else(
        pc.equal(unit, ""), key, pc.binary_join_element_wise(key, " (", unit, ")", "")
    )
    written = pc.binary_join_element_wise('"', label, '": ', _numeral(lower), "")
    counts = np.bincount(row.to_numpy(), minlength=lines.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    listed = pa.ListArray.from_arrays(offsets, written.take(place))
    params = pc.binary_join_element_wise("{", pc.binary_join(listed, ", "), "}", "")
    none = pa.scalar(None, pa.string())
    params = pc.if_else(pa.array(counts > 0), params, none)
    return Pairs(
        lines, row.cast(pa.int64()), key.take(place), unit.take(place), value.take(place), params
    )


def _numeral(text: pa.Array) -> pa.Array:
    """Write numbers as JSON does: no sign +, no zeros in front."""
    return pc.replace_substring_regex(text, r"^\+?(-?)0*(\d)", r"\1\2")
