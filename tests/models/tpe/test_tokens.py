"""Tokens of step trees: those of one merge at a time, and back again to the same trees."""

from hypothesis import given, settings
from hypothesis import strategies as st

from teller.models.tpe.decode import decode
from teller.models.tpe.encode import Encoding, encode
from teller.models.tpe.training import train
from teller.models.tpe.trees import Forest
from tests.models.tpe import plain
from tests.models.tpe.forests import forests, same

SEEN = ("a", "b1", "b2", "C#")
NEW = (*SEEN, "b3", "d", "E7")


def tokens_of(encoding: Encoding) -> list[tuple[int, list[int]]]:
    rows: list[list[int]] = [[] for _ in range(encoding.tokens.num_rows)]
    for token, row in zip(*(encoding.parts[n].to_pylist() for n in ("token", "row")), strict=True):
        rows[token].append(row)
    return list(zip(encoding.tokens["token"].to_pylist(), rows, strict=True))


@settings(deadline=None)
@given(forests(), st.integers(0, 30), st.sampled_from([3, 64]))
def test_training_is_that_of_counting_all_pairs_before_each_merge(
    forest: Forest, merges: int, largest: int
) -> None:
    assert train(forest, merges, largest).merges == plain.trained(forest, merges, largest)


@settings(max_examples=100, deadline=None)
@given(forests(SEEN), forests(NEW), st.integers(0, 30))
def test_encoding_is_that_of_one_merge_at_a_time(seen: Forest, new: Forest, merges: int) -> None:
    vocabulary = train(seen, merges)
    for forest in (seen, new):
        assert tokens_of(encode(forest, vocabulary)) == plain.encoded(forest, vocabulary)


@settings(max_examples=100, deadline=None)
@given(forests(SEEN), forests(NEW), st.integers(0, 30))
def test_decoding_gives_every_step_back(seen: Forest, new: Forest, merges: int) -> None:
    vocabulary = train(seen, merges)
    for forest in (seen, new):
        assert same(decode(encode(forest, vocabulary), vocabulary), forest)
