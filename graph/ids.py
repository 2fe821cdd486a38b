"""Ids: `int64`, the same for the same input on any machine, never from row positions of a run.

A span's id is a 34-bit hash of its source and the 29-bit place in it, so that a file that grows
keeps its ids; every other id is a 63-bit hash of run, label and natural key.
"""

from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

PLACE_BITS: Final = 29
SOURCE_BITS: Final = 34
HEAD_BYTES: Final = 64 * 1024


def _hash(*parts: object) -> int:
    text = "\x1f".join(str(p) for p in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def node_id(run_key: str, label: str, *key: object) -> int:
    """Give the 63-bit id of a node; `run_key` is "" for what all runs share."""
    return _hash(run_key, label, *key) >> 1


def place_base(run_key: str, rank: int | None, kind: str, head: str) -> int:
    """Give the id of place 0 of a source; the id of place n is this plus n."""
    return _hash(run_key, rank, kind, head) >> (64 - SOURCE_BITS) << PLACE_BITS


def run_id(run_key: str) -> int:
    """Give the id of a run."""
    return node_id(run_key, "Run", run_key)


def node_ids(run_key: str, label: str, *key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Give the 63-bit ids of many nodes whose natural keys are integers, one array a key part.

    The mixer is splitmix64's (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", 2014): a bijection, so that equal parts are the only way to equal sums.
    """
    mixed = np.full(len(key[0]), _hash(run_key, label), np.uint64)
    for part in key:
        mixed = _mix(mixed + np.uint64(0x9E3779B97F4A7C15) ^ part.astype(np.uint64))
    return (mixed >> np.uint64(1)).astype(np.int64)


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def rank_id(run_key: str, rank: int) -> int:
    """Give the id of a rank."""
    return int(node_ids(run_key, "Rank", np.array([rank], np.int64))[0])
