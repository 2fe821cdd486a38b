"""Forests to test with: random ones, and ones written as text."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from teller.models.tpe.trees import STEPS, VALUES, Forest, Word, planted

NS = st.integers(-(1 << 40), 1 << 62)


def forest_of(steps: Sequence[Sequence[tuple[int, str]]]) -> Forest:
    """Give the forest of steps that are lists of (depth, operator), depth first."""
    rows = [(s, d, o) for s, step in enumerate(steps) for d, o in step]
    open_rows: list[int] = []
    parents = []
    for row, (step, depth, _) in enumerate(rows):
        if row and rows[row - 1][0] != step:
            open_rows = []
        open_rows = [*open_rows[:depth], row]
        parents.append(open_rows[-2] if len(open_rows) > 1 else -1)
    words = tuple(dict.fromkeys(word_of(o) for _, _, o in rows))
    code = {o: n for n, (*_, o) in enumerate(words)}
    count = len(rows)
    values = {name: [row * 1000 + n for row in range(count)] for n, name in enumerate(VALUES.names)}
    return planted(
        steps=pa.table({"rank": [0] * len(steps), "step_index": range(len(steps))}, schema=STEPS),
        words=words,
        step=np.array([s for s, _, _ in rows], np.int64),
        parent=np.array(parents, np.int64),
        word=np.array([code[o] for _, _, o in rows], np.int64),
        values=pa.table(values, schema=VALUES),
        order=np.arange(count),
    )


def word_of(operator: str) -> Word:
    """Give a word whose layer and family come from its first letter."""
    layer = "device" if operator[0].isupper() else "framework"
    return layer, "vowel" if operator[0].lower() in "aeiou" else "consonant", operator


@st.composite
def steps(
    draw: st.DrawFn, operators: Sequence[str] = "abC", most: int = 24
) -> list[tuple[int, str]]:
    """Give one step: any number of trees, and none too."""
    names = draw(st.lists(st.sampled_from(operators), max_size=most))
    made: list[tuple[int, str]] = []
    for name in names:
        made.append((draw(st.integers(0, made[-1][0] + 1 if made else 0)), name))
    return made


@st.composite
def forests(draw: st.DrawFn, operators: Sequence[str] = "abC", most: int = 24) -> Forest:
    """Give a few steps, some of them the same."""
    shapes = draw(st.lists(steps(operators, most), max_size=4))
    chosen = draw(st.lists(st.sampled_from(shapes), max_size=6)) if shapes else []
    made = forest_of(chosen)
    drawn = st.lists(NS, min_size=len(made), max_size=len(made))
    values = {name: draw(drawn) for name in ("dur_ns", "excess_ns")}
    columns = {n: values.get(n, made.values[n]) for n in VALUES.names}
    return Forest(
        made.steps, made.words, made.step, made.parent, made.depth, made.word,
        pa.table(columns, schema=VALUES),
    )  # fmt: skip


def text_of(forest: Forest) -> list[tuple[int, int, Word]]:
    """Give step, depth and word of each row."""
    rows = zip(forest.step.tolist(), forest.depth.tolist(), forest.word.tolist(), strict=True)
    return [(s, d, forest.words[w]) for s, d, w in rows]


def same(one: Forest, other: Forest) -> bool:
    """Tell whether two forests say the same; words may be numbered differently."""
    return (
        text_of(one) == text_of(other)
        and one.parent.tolist() == other.parent.tolist()
        and one.values.equals(other.values)
        and one.steps.equals(other.steps)
    )
