"""Requests that ranges of a capture name: which, in which step, and when.

Engines and their users write ids into ranges: `rid=…`, `request_ids=['…', '…']`, `Req 0f8fad5b`.
Only distinct names are looked at, however many spans bear them.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# One row a request and step; `step_index` is null outside of steps. Source clock and numbers.
ASKED: Final = pa.schema(
    [
        ("name", pa.string()),
        ("step_index", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
    ]
)

_ID: Final = r"[0-9A-Za-z](?:[\w.:-]*\w)?"
_KEY: Final = r"(?i:(?:^|\W)(?:rid|req(?:uest)?[_. -]?id)s?)['\"]?\s*[=:]\s*"
_OPEN: Final = rf"{_KEY}[\[({{]"
# the first form that a name has is taken; a list that was cut off loses its last, broken id
_FORMS: Final = (
    rf"{_OPEN}(?P<ids>[^\])}}]*)[\])}}]",
    rf"{_OPEN}(?P<ids>[^\])}}]*),",
    rf"{_KEY}['\"]?(?P<ids>{_ID})",
    rf"(?:^|[^\w-])(?P<ids>(?:chatcmpl|cmpl|embd)-{_ID})",
    r"(?:^|\s)Req (?P<ids>[0-9a-f]{8})(?:\s|$)",
)
_LIKELY: Final = (
    r"(?i:\brids?['\"]?\s*[=:]|req(?:uest)?[_. -]?ids?['\"]?\s*[=:])|cmpl-|embd-|Req [0-9a-f]{8}"
)
_NO_ID: Final = r"^(?i:none|null|nan|n/?a|true|false|unknown|self|str|int)$"


def asked(spans: pa.Table) -> pa.Table:
    """Give the requests that the ranges of a source name, as `ASKED`; spans have their steps."""
    name = spans["name"].combine_chunks()
    codes, ids = requests_in(name.dictionary.cast(pa.string()))
    if not len(codes):
        return ASKED.empty_table()
    own = name.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    marked = np.zeros(len(name.dictionary), np.bool_)
    marked[codes] = True
    rows = np.flatnonzero(marked[own])
    # each span once for every request that its name lists
    first = np.searchsorted(codes, own[rows])
    many = np.searchsorted(codes, own[rows], side="right") - first
    at = np.repeat(first - (np.cumsum(many) - many), many) + np.arange(int(many.sum()))
    spread = spans.select(["step_index", "start_ns", "end_ns"]).take(np.repeat(rows, many))
    sums = (
        spread.append_column("name", ids.take(pa.array(at)))
        .group_by(["name", "step_index"], use_threads=False)
        .aggregate([("start_ns", "min"), ("end_ns", "max")])
    )
    columns = (sums[c] for c in ("name", "step_index", "start_ns_min", "end_ns_max"))
    return pa.table(list(columns), schema=ASKED)


def requests_in(names: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Give the requests that names hold: the place of the name, ascending, and the id."""
    likely = np.flatnonzero(
        pc.fill_null(pc.match_substring_regex(names, _LIKELY), False).to_numpy(zero_copy_only=False)
    )
    if not len(likely):
        return likely, pa.array([], pa.string())
    words = names.take(pa.array(likely))
    found = [pc.struct_field(pc.extract_regex(words, form), "ids") for form in _FORMS]
    listed = pc.split_pattern_regex(pc.coalesce(*found), pattern=r"[,\s]+")
    ids = pc.utf8_trim(pc.list_flatten(listed), characters="'\" ")
    good = pc.and_(
        pc.match_substring_regex(ids, rf"^{_ID}$"),
        pc.invert(pc.match_substring_regex(ids, _NO_ID)),
    )
    of = pc.list_parent_indices(listed).filter(good).to_numpy()
    return likely[of], ids.filter(good)
