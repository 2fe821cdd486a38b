"""Words are found by the shapes of messages exactly as in the messages themselves."""

import random

import numpy as np
import pyarrow as pa
import pytest

from teller.ingest.logs.knowledge import Knowledge
from teller.ingest.logs.known import KNOWN
from teller.ingest.logs.shapes import SHAPE, compacted, holding, near, shapes

BEFORE = ("", "0", "ab", "5.", "0x7f.3", "a1b.c", " ", "3e", "é")


def table(texts: list[str]) -> pa.Table:
    text = pa.array(texts, pa.string())
    return pa.table({"text": text, SHAPE: shapes(text)})


@pytest.mark.parametrize("module", KNOWN, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_a_mark_is_found_whatever_numbers_stand_around_it(module: Knowledge) -> None:
    chance = random.Random(5)
    for mark in module.MARKS:
        texts = [a + mark + b for a in BEFORE for b in BEFORE]
        texts += ["".join(chance.sample(mark, len(mark))) for _ in range(20)]
        lines = table(texts)
        assert holding(lines, mark).tolist() == [mark in text for text in texts]
        assert {t for t in texts if mark in t} <= set(near(lines, mark)["text"].to_pylist())


def test_several_words_are_found_as_one() -> None:
    texts = ["comm 0x12 rank 3", "omm 0x12", "Channel 3 via P2P", "9 via"]
    lines = table(texts)
    assert holding(lines, "comm 0x", " via ").tolist() == [True, False, True, False]
    assert holding(lines.drop_columns([SHAPE]), "comm 0x", " via ").tolist() == [1, 0, 1, 0]
    assert holding(lines, "").all()
    assert not holding(table([]), "x").any()


def test_few_lines_keep_few_shapes() -> None:
    lines = compacted(table([f"step {n} took {n}.5 ms" for n in range(9)] + ["x"]).slice(2, 4))
    assert lines[SHAPE].combine_chunks().dictionary.to_pylist() == ["step 0 took 0 ms"]
    assert np.unique(lines[SHAPE].combine_chunks().indices.to_numpy()).tolist() == [0]
