"""Spans as the bytes that the timeline draws: sorted by lane and start, one column after another.

What is written here is read by `components/timeline.js`; its head says the layout.
"""

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.ui import phrase

Ints = npt.NDArray[np.int64]

IN_SLICE: Final = 1
MARK: Final = 2
EVIDENCE: Final = 4
ROW_PX: Final = 18
RULER_PX: Final = 24

# one list for both themes: each keeps 3:1 to white and to the dark paper
COLORS: Final = {
    "matrix products": "#3b73de", "attention": "#7a5af8", "communication": "#d9622b",
    "copies": "#b8860b", "other device work": "#0f8f83", "engine": "#5b7083",
    "framework": "#8794a6", "runtime": "#a3576f", "log line": "#c2417c",
}  # fmt: skip
HOT: Final = "#e0342b"

_KINDS: Final = tuple(COLORS)
_MATRIX: Final = frozenset({"gemm", "moe", "conv", "linear"})
_ATTENTION: Final = frozenset({"attention"})
_COPIES: Final = frozenset({"memcpy", "memset", "copy"})


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands out: ids in the slice, ids that are evidence, and the one that is chosen."""

    in_slice: Collection[int] = ()
    evidence: Collection[int] = ()
    selected: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """What the picture is of: its key, its times in ns, and how ranks are called, in order."""

    key: str
    from_ns: int
    to_ns: int
    ranks: Mapping[int, str] = field(default_factory=dict)
    depth: int = 4  # levels of a thread that are drawn
    asks: bool = True  # whether a zoom asks for finer spans
    gutter_px: int = 170
    zones: Sequence[tuple[int, int]] = ()  # stretches to shade, ns


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes for the timeline, its height, and what is in it."""

    data: bytes
    height_px: int
    span_count: int
    kinds: tuple[str, ...]  # of the spans, in the order of COLORS


def draw(spans: pa.Table, frame: Frame, marks: Marks, lines: pa.Table | None = None) -> Picture:
    """Give the picture of spans of the query `window_spans`, with log lines on lanes of their own.

    Spans deeper than the frame's depth are left out.
    """
    shown = spans.filter(pc.or_(pc.is_valid(spans["stream"]),
                                pc.less(pc.fill_null(spans["depth"], 0), frame.depth)))  # fmt: skip
    rows = _rows(shown, frame)
    if lines is not None and lines.num_rows:
        rows = _with_lines(rows, lines, frame)
    order = np.lexsort((rows["start"], rows["lane_key"]))
    keys, lane = np.unique(rows["lane_key"][order], return_inverse=True)
    lanes = _lanes(keys, rows["lane_names"], frame)
    used = rows["color"][order]
    head = {
        "n": len(order), "key": frame.key, "lanes": lanes, "names": rows["names"],
        "colors": list(COLORS.values()), "inks": INKS, "hot": HOT,
        "from": 0.0, "to": max((frame.to_ns - frame.from_ns) / 1e3, 0.1), "zero": 0.0,
        "gutter": frame.gutter_px, "asks": frame.asks, "dim": bool(marks.in_slice),
        "selected": str(marks.selected) if marks.selected else "",
        "zones": [{"from": (a - frame.from_ns) / 1e3, "to": (b - frame.from_ns) / 1e3}
                  for a, b in frame.zones],
    }  # fmt: skip
    flags = rows["flags"] | _flags(rows["id"], marks)
    data = packed(head, rows, order, lane, flags)
    kinds = tuple(_KINDS[i] for i in np.unique(used)) if len(used) else ()
    height = RULER_PX + ROW_PX * max(len(lanes), 3) + 6
    return Picture(data, min(height, 620), len(order), kinds)


def packed(
    head: Mapping[str, Any], rows: Mapping[str, Any], order: Ints, lane: Any, flags: Any
) -> bytes:
    """Give head and columns in the layout that the timeline reads."""
    said = json.dumps(head, ensure_ascii=False).encode()
    columns = (
        (rows["start"], "<f8"), (rows["length"], "<f8"), (rows["id"], "<i8"), (rows["name"], "<u4"),
    )  # fmt: skip
    return b"".join([
        struct.pack("<I", len(said)), said, b"\0" * (-(4 + len(said)) % 8),
        *(np.asarray(column)[order].astype(kind).tobytes() for column, kind in columns),
        np.asarray(lane).astype("<u2").tobytes(),
        np.asarray(rows["color"])[order].astype("u1").tobytes(),
        np.asarray(flags)[order].astype("u1").tobytes(),
    ])  # fmt: skip


def _rows(spans: pa.Table, frame: Frame) -> dict[str, Any]:
    name = spans["name"].combine_chunks().cast(pa.string()).dictionary_encode()
    lanes = spans["lane"].combine_chunks().cast(pa.string()).dictionary_encode()
    lane_names = [phrase.visible(n or "") for n in lanes.dictionary.to_pylist()]
    rank = _ints(spans["rank"])
    on_device = np.asarray(pc.is_valid(spans["stream"]).combine_chunks().to_numpy(False), bool)
    depth = np.where(on_device, 0, _ints(spans["depth"]))
    place = {r: i for i, r in enumerate(frame.ranks)}
    by_rank = np.array([place.get(int(r), len(place)) for r in rank], np.int64)
    lane_key = ((by_rank * 2 + on_device) * 4096 + _ints(lanes.indices)) * 256 + depth
    return {
        "id": _ints(spans["id"]), "start": (_ints(spans["start_ns"]) - frame.from_ns) / 1e3,
        "length": _ints(spans["dur_ns"]) / 1e3, "name": _ints(name.indices),
        "names": [phrase.visible(n or "") for n in name.dictionary.to_pylist()],
        "color": colors(spans), "lane_key": lane_key, "lane_names": lane_names,
        "flags": np.zeros(spans.num_rows, np.int64),
    }  # fmt: skip


def _with_lines(rows: dict[str, Any], lines: pa.Table, frame: Frame) -> dict[str, Any]:
    """Add a mark for each log line, above the spans of its rank."""
    place = {r: i for i, r in enumerate(frame.ranks)}
    rank = lines["rank"].to_pylist()
    by_rank = np.array([place.get(r, len(place)) for r in rank], np.int64)
    texts = [phrase.visible(t or "") for t in lines["text"].to_pylist()]
    more = {
        "id": _ints(lines["id"]), "start": (_ints(lines["time_ns"]) - frame.from_ns) / 1e3,
        "length": np.zeros(lines.num_rows), "name": len(rows["names"]) + np.arange(lines.num_rows),
        "color": np.full(lines.num_rows, _KINDS.index("log line")),
        "lane_key": (by_rank * 2) * 4096 * 256 - 1, "flags": np.full(lines.num_rows, MARK),
    }  # fmt: skip
    joined = {name: np.concatenate([rows[name], column]) for name, column in more.items()}
    return rows | joined | {"names": rows["names"] + texts}


def _lanes(keys: Ints, names: Sequence[str], frame: Frame) -> list[dict[str, Any]]:
    """Give what each row is called: a rank on its first row, a lane on the next."""
    ranks, told = list(frame.ranks), []
    for key in keys.tolist():
        is_log = key % 256 == 255 and (key + 1) % (2 * 4096 * 256) == 0
        number = (key + is_log) // (4096 * 256) // 2
        rank = frame.ranks[ranks[number]] if number < len(ranks) else "no rank"
        told.append((number, rank, "log lines" if is_log else names[(key // 256) % 4096]))
    rows: list[dict[str, Any]] = []
    shown = ""  # the lane that was named last
    for at, (number, rank, lane) in enumerate(told):
        is_first = at == 0 or told[at - 1][0] != number
        goes_on = at + 1 < len(told) and told[at + 1] == (number, rank, lane)
        label = rank if is_first else "" if lane == shown else lane
        if is_first and not goes_on:
            label = f"{rank} · {lane}"
        shown = "" if is_first and goes_on else lane
        rows.append({
            "label": label, "told": f"{rank}, {lane}", "strong": is_first, "rule": is_first,
            "band": number % 2 == 1,
        })  # fmt: skip
    return rows


def _flags(ids: Ints, marks: Marks) -> Ints:
    flags = np.zeros(len(ids), np.int64)
    flags |= IN_SLICE * np.isin(ids, np.fromiter(marks.in_slice, np.int64, len(marks.in_slice)))
    shown = np.fromiter(marks.evidence, np.int64, len(marks.evidence))
    return flags | EVIDENCE * np.isin(ids, shown)


def kind_of(layer: str, family: str) -> str:
    """Give the kind of work that a span is coloured by."""
    if layer == "comm" or "all_" in family or family in ("broadcast", "reduce_scatter", "send"):
        return "communication"
    if layer in ("engine", "framework", "runtime"):
        return layer
    if family in _MATRIX:
        return "matrix products"
    if family in _ATTENTION:
        return "attention"
    return "copies" if family in _COPIES else "other device work"


def colors(spans: pa.Table) -> Ints:
    """Give the place in COLORS of each span, by its `layer` and `family`."""
    both = pc.binary_join_element_wise(
        pc.fill_null(spans["layer"].cast(pa.string()), ""),
        pc.fill_null(spans["family"].cast(pa.string()), ""), "|",
    ).combine_chunks().dictionary_encode()  # fmt: skip
    known = [_KINDS.index(kind_of(*pair.split("|", 1))) for pair in both.dictionary.to_pylist()]
    return np.array(known or [0], np.int64)[_ints(both.indices)]


def _ints(column: Any) -> Ints:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    filled: Ints = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return filled


def _ink(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return (
        "#000000"
        if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.19
        else "#ffffff"
    )


INKS: Final = [_ink(color) for color in COLORS.values()]
