"""The call trees of many steps at once, depth first, as columns."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph import project

Ints = npt.NDArray[np.int64]
Word = tuple[str, str, str]  # layer, family, operator

STEPS: Final = pa.schema([("rank", pa.int64()), ("step_index", pa.int64())])
VALUES: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("start_ns", pa.int64()),
        ("dur_ns", pa.int64()),
        ("self_ns", pa.int64()),
        ("gap_ns", pa.int64()),
        ("excess_ns", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of steps: a row a span, steps one after the other, each in depth-first order.

    A row's first child is therefore the row after it. Siblings are ordered by lane (host before
    device, a lane that is seen first before others) and then by start, so that what runs at the
    same time in two lanes does not shuffle from step to step.
    """

    steps: pa.Table  # STEPS; one without spans may be among them
    words: tuple[Word, ...]
    step: Ints  # row of `steps`, ascending
    parent: Ints  # row; -1 at the top of its step
    depth: Ints  # number of ancestors
    word: Ints  # place in `words`
    values: pa.Table  # VALUES

    def __len__(self) -> int:
        """Give the number of spans."""
        return len(self.step)

    @property
    def starts(self) -> Ints:
        """Give the first row of each step, and the number of rows at the end."""
        return np.searchsorted(self.step, np.arange(self.steps.num_rows + 1))


def of_run(generation: Path, sources: int | None = None) -> Forest:
    """Give the trees of all steps of an archived run, from its generation folder.

    With `sources`, only those of the first so many sources; a source is what one process left.
    """
    tables_of = islice(project.span_tables(generation), sources)
    names = ("Span", "CHILD.Span.Span", "LAUNCHED.Span.Span")
    return joined(grown(*(tables[name] for name in names)) for tables in tables_of)


def grown(spans: pa.Table, child: pa.Table, launched: pa.Table) -> Forest:
    """Give the trees of one source's steps, from its graph tables Span, CHILD and LAUNCHED.

    Spans outside steps are left out; one whose parent is in another step is at the top of its own.
    """
    kept = spans.filter(pc.is_valid(spans["step_index"]))
    rank, index = (_ints(kept[n]) for n in ("rank", "step_index"))
    steps, step = _numbered(rank, index)
    parent = _parents(_ints(kept["id"]), child, launched)
    inside = (parent >= 0) & (step[parent] == step)
    words, word = _worded(kept)
    order = _ordered(step, _lanes(kept), _ints(kept["start_ns"]))
    values = kept.select(VALUES.names).cast(VALUES)
    return planted(steps, words, step, np.where(inside, parent, -1), word, values, order)


def planted(
    steps: pa.Table,
    words: tuple[Word, ...],
    step: Ints,
    parent: Ints,
    word: Ints,
    values: pa.Table,
    order: Ints,
) -> Forest:
    """Give the forest of rows that come in any order; `order` sorts them by step and siblings."""
    back = _inverse(order)
    moved = np.where(parent[order] >= 0, back[parent[order]], -1)
    depth, position = depth_first(moved)
    rows = order[_inverse(position)]
    place = _inverse(rows)
    return Forest(
        steps=steps,
        words=words,
        step=step[rows],
        parent=np.where(parent[rows] >= 0, place[parent[rows]], -1),
        depth=depth[_inverse(position)],
        word=word[rows],
        values=values.take(pa.array(rows)),
    )


def depth_first(parent: Ints) -> tuple[Ints, Ints]:
    """Give depth and depth-first position of each row; siblings must be in order, roots too."""
    depth = _depths(parent)
    levels = np.argsort(narrow(depth), kind="stable")
    bounds = np.searchsorted(depth[levels], np.arange(depth.max(initial=0) + 2)).tolist()
    size = np.ones(len(parent), np.int64)
    for low, high in reversed(list(pairwise(bounds[1:]))):  # all levels but the top
        np.add.at(size, parent[levels[low:high]], size[levels[low:high]])
    position = _before(parent, size)
    for low, high in pairwise(bounds[1:]):
        rows = levels[low:high]
        position[rows] += position[parent[rows]] + 1
    return depth, position


def joined(forests: Iterable[Forest]) -> Forest:
    """Give one forest of several, their steps one after the other."""
    parts = list(forests)
    words = tuple(sorted({w for f in parts for w in f.words}))
    code = {w: n for n, w in enumerate(words)}
    step, parent, word = [[np.zeros(0, np.int64)] for _ in range(3)]
    rows = steps = 0
    for forest in parts:
        step.append(forest.step + steps)
        parent.append(np.where(forest.parent >= 0, forest.parent + rows, -1))
        word.append(np.array([code[w] for w in forest.words], np.int64)[forest.word])
        rows += len(forest)
        steps += forest.steps.num_rows
    return Forest(
        steps=pa.concat_tables([STEPS.empty_table(), *(f.steps for f in parts)]),
        words=words,
        step=np.concatenate(step),
        parent=np.concatenate(parent),
        depth=np.concatenate([np.zeros(0, np.int64), *(f.depth for f in parts)]),
        word=np.concatenate(word),
        values=pa.concat_tables([VALUES.empty_table(), *(f.values for f in parts)]),
    )


def _depths(parent: Ints) -> Ints:
    """Double the jump to an ancestor until all are at the top: few passes however deep."""
    top = len(parent)
    jump: Ints = np.append(np.where(parent >= 0, parent, top), top)
    depth: Ints = (jump != top).astype(np.int64)
    while (jump != top).any():
        depth += depth[jump]
        jump = jump[jump]
    return depth[:-1]


def _before(parent: Ints, size: Ints) -> Ints:
    """Give the number of rows in the trees of earlier siblings."""
    order = np.argsort(parent, kind="stable")
    ends = np.cumsum(size[order])
    first = np.searchsorted(parent[order], parent[order])
    before = np.empty(len(parent), np.int64)
    before[order] = ends - size[order] - (ends - size[order])[first]
    return before


def _parents(own: Ints, child: pa.Table, launched: pa.Table) -> Ints:
    """Give the row of each span's parent by nesting or launch; -1 where it has none."""
    order = np.argsort(own, kind="stable")
    ranked = own[order]
    parent = np.full(len(own), -1)
    for table in (child, launched):
        ends = np.stack([_ints(table["src"]), _ints(table["dst"])])
        at = np.minimum(np.searchsorted(ranked, ends), max(len(own) - 1, 0))
        known = (ranked[at] == ends).all(axis=0) if len(own) else np.zeros(ends.shape[1], bool)
        source, target = order[at[:, known]] if len(own) else (parent, parent)
        parent[target] = source
    return parent


def _numbered(rank: Ints, index: Ints) -> tuple[pa.Table, Ints]:
    keys, step = np.unique(np.stack([rank, index]), axis=1, return_inverse=True)
    return pa.table(list(keys), schema=STEPS), step.reshape(-1)


def _worded(columns: pa.Table) -> tuple[tuple[Word, ...], Ints]:
    """Give the words of spans, ascending, and which of them each span has."""
    code = np.zeros(columns.num_rows, np.int64)
    parts = [_coded(columns[name]) for name in ("layer", "family", "operator")]
    for part in parts:
        code = code * len(part.dictionary) + _codes(part)
    _, first, code = np.unique(code, return_index=True, return_inverse=True)
    words = list(zip(*(part.take(pa.array(first)).to_pylist() for part in parts), strict=True))
    order = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)
    return tuple(words[n] for n in order), _inverse(order)[code]


def _lanes(spans: pa.Table) -> Ints:
    """Give each row the number of its lane: as they come, host lanes first."""
    lane = _codes(_coded(spans["lane"]))
    _, first, code = np.unique(lane, return_index=True, return_inverse=True)
    device = pc.is_valid(spans["stream"]).to_numpy()
    return _inverse(np.lexsort((first, device[first])))[code]


def _ordered(step: Ints, lane: Ints, start: Ints) -> Ints:
    """Sort by step, lane, start and then as rows come; by radix where numbers are small."""
    order = np.argsort(start, kind="stable")
    for keys in (lane, step):
        order = order[np.argsort(narrow(keys[order]), kind="stable")]
    return order


def narrow(numbers: Ints) -> npt.NDArray[np.integer]:
    """Give 16-bit numbers where they fit: only those are sorted by radix, six times as fast."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    one = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
    whole = one.combine_chunks()
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


def _codes(column: pa.DictionaryArray) -> Ints:
    codes: Ints = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def _inverse(order: Ints) -> Ints:
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back
