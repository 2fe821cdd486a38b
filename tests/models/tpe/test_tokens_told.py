"""What tokens say of the steps that they stand for, on steps that fit on a line."""

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from teller.errors import BadUsage
from teller.models.tpe.decode import decode
from teller.models.tpe.encode import encode
from teller.models.tpe.training import train
from teller.models.tpe.trees import Forest, depth_first, grown, joined
from teller.models.tpe.vocabulary import Merge, Vocabulary, kin, load, patterns, stem
from tests.models.tpe.forests import forest_of, same, text_of, word_of

LAYER = [(0, "layer1"), (1, "norm"), (1, "gemm"), (2, "GEMM"), (1, "gemm"), (2, "GEMM")]
STEP = [(0, "step"), *((d + 1, o) for d, o in LAYER * 3)]


def counted(forest: Forest, vocabulary: Vocabulary) -> list[int]:
    """Give the number of tokens of each step."""
    steps = encode(forest, vocabulary).tokens["step"].to_numpy()
    counts: list[int] = np.bincount(steps, minlength=forest.steps.num_rows).tolist()
    return counts


def test_the_first_merges_are_a_smaller_vocabulary_and_give_more_tokens() -> None:
    forest = forest_of([STEP] * 4)
    whole = train(forest)
    assert whole.first(10) == train(forest, 10)
    tokens = [counted(forest, whole.first(n))[0] for n in range(len(whole.merges) + 1)]
    assert tokens == sorted(tokens, reverse=True)
    assert (tokens[0], tokens[-1]) == (len(STEP), 1)


def test_no_token_is_larger_than_asked() -> None:
    forest = forest_of([STEP] * 4)
    vocabulary = train(forest, largest=6)
    assert vocabulary.sizes().max() == 6
    assert counted(forest, vocabulary) == [1 + 3] * 4


def test_an_engine_with_other_names_is_written_by_families() -> None:
    vocabulary = train(forest_of([STEP] * 4))
    # the same letters first, so that layers and families are the same
    other = [(d, o + o[1].lower() if len(o) > 1 else o) for d, o in STEP]
    forest = forest_of([other])
    assert (vocabulary.base_of(forest) == 0).all()
    assert counted(forest, vocabulary) == [1]
    assert same(decode(encode(forest, vocabulary), vocabulary), forest)


def test_numbers_in_names_make_no_difference_and_come_back() -> None:
    vocabulary = train(forest_of([STEP] * 2))
    forest = forest_of([[(d, o.replace("1", "27")) for d, o in STEP]])
    encoding = encode(forest, vocabulary)
    assert encoding.tokens.num_rows == 1
    assert same(decode(encoding, vocabulary), forest)


def test_a_token_tells_its_times_and_where_the_largest_excess_sits() -> None:
    forest = forest_of([[(0, "a"), (1, "b"), (1, "b"), (0, "c")]])
    values = pa.table(
        {
            "id": [1, 2, 3, 4],
            "start_ns": [0, 10, 30, 100],
            "dur_ns": [60, 10, 20, 5],
            "self_ns": [30, 10, 20, 5],
            "gap_ns": [7, 0, 0, 40],
            "excess_ns": [-3, 2, 9, 0],
        }
    )
    forest = Forest(
        forest.steps, forest.words, forest.step, forest.parent, forest.depth, forest.word, values
    )
    bare = train(forest, merges=0)
    [a, b] = (1 + bare.words.index(word_of(o)) for o in "ab")
    merges = (Merge(a, b, 0, False), Merge(len(bare), b, 1, True))
    told = encode(forest, msgspec.structs.replace(bare, merges=merges)).tokens.to_pylist()
    assert [(t["size"], t["total_ns"], t["self_ns"], t["gap_ns"]) for t in told] == [
        (3, 60, 60, 7), (1, 5, 5, 40),
    ]  # fmt: skip
    assert [(t["excess_ns"], t["excess_at"], t["parent"]) for t in told] == [(9, 2, -1), (0, 0, -1)]


def test_siblings_under_another_parent_are_never_one_token() -> None:
    forest = forest_of([[(0, "a"), (1, "x"), (0, "b"), (1, "x")]] * 2)
    shown = patterns(train(forest))
    tops = [
        int((shown.parent[a:b] < 0).sum())
        for a, b in zip(shown.starts[:-1], shown.starts[1:], strict=True)
    ]
    assert max(tops) <= 2  # a and b, under the step itself; the two x hang on different spans


def test_a_tree_88_deep_comes_back() -> None:
    forest = forest_of([[(n, "ab"[n % 2]) for n in range(88)]] * 2)
    vocabulary = train(forest)
    assert forest.depth.max() == 87
    assert same(decode(encode(forest, vocabulary), vocabulary), forest)


def test_steps_without_spans_stay_and_have_no_tokens() -> None:
    forest = forest_of([[], [(0, "a")], []])
    vocabulary = train(forest)
    assert counted(forest, vocabulary) == [0, 1, 0]
    assert same(decode(encode(forest, vocabulary), vocabulary), forest)


def test_the_order_of_runs_does_not_change_a_vocabulary() -> None:
    one, two = forest_of([STEP] * 2), forest_of([LAYER] * 3)
    assert train(joined([one, two])) == train(joined([two, one]))


def test_a_vocabulary_is_read_as_it_was_written(tmp_path: Path) -> None:
    vocabulary = train(forest_of([STEP] * 4))
    vocabulary.save(tmp_path / "v.json")
    assert load(tmp_path / "v.json") == vocabulary


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no vocabulary that can be read"),
        ('{"words": [], "merges": [], "version": 99}', "version 99 is newer"),
        ('{"words": [["a", "b", "c"]], "merges": [[1, 5, 0, true]]}', "come later"),
        ('{"words": [["a", "b", "c"]], "merges": [[1, 1, 3, true]]}', "no place 3"),
    ],
)
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(BadUsage, match=said):
        load(tmp_path / "v.json")


def test_words_lose_their_numbers_and_kin_their_names() -> None:
    word = ("engine", "norm", "model.layers.31.norm2")
    assert stem(word) == ("engine", "norm", "model.layers.#.norm#")
    assert kin(stem(word)) == ("engine", "norm", "")


def test_depth_first_places_follow_parents_and_siblings() -> None:
    parent = np.array([-1, -1, 0, 0, 2, 1])
    depth, position = depth_first(parent)
    assert depth.tolist() == [0, 0, 1, 1, 2, 1]
    assert position.tolist() == [0, 4, 1, 3, 2, 5]


def spans(rows: list[tuple[int, int | None, str, str, int | None, int]]) -> pa.Table:
    """Give a Span table of (id, step, operator, lane, stream, start) rows."""
    kept = ("id", "step_index", "operator", "lane", "stream", "start_ns")
    table = {name: [row[n] for row in rows] for n, name in enumerate(kept)}
    count = len(rows)
    table |= {n: [0] * count for n in ("rank", "dur_ns", "self_ns", "gap_ns", "excess_ns")}
    return pa.table(
        table
        | {
            "layer": ["device" if r[4] is not None else "runtime" for r in rows],
            "family": ["other"] * count,
            "stream": pa.array(table["stream"], pa.int64()),
            "step_index": pa.array(table["step_index"], pa.int64()),
        }
    )


def test_a_tree_is_made_of_nesting_and_launches_lane_by_lane() -> None:
    table = spans(
        [
            (10, 0, "outer", "thread 1", None, 0),
            (11, 0, "launch", "thread 1", None, 5),
            (12, 0, "late", "thread 2", None, 3),
            (13, 0, "kernel", "stream 7", 7, 90),
            (14, 0, "copy", "stream 7", 7, 80),
            (15, 1, "orphan", "stream 7", 7, 85),  # launched in another step
            (16, None, "outside", "thread 1", None, 1),
        ]
    )
    child = pa.table({"src": [10], "dst": [11]})
    launched = pa.table({"src": [11, 11, 11], "dst": [13, 14, 15]})
    forest = grown(table, child, launched)
    assert [(s, d, w[2]) for s, d, w in text_of(forest)] == [
        (0, 0, "outer"), (0, 1, "launch"), (0, 2, "copy"), (0, 2, "kernel"), (0, 0, "late"),
        (1, 0, "orphan"),
    ]  # fmt: skip
    assert forest.values["id"].to_pylist() == [10, 11, 14, 13, 12, 15]
