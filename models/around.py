"""Means over a row's neighbours in time: what is weak in one step shows over several."""

from typing import Final

import numpy as np

from teller.graph.medians import Floats, Ints

REACH: Final = 4  # neighbours on either side


def around(group: Ints, values: Floats, reach: int = REACH) -> Floats:
    """Give the mean of each row with up to `reach` rows before and after it of its group.

    `values` has the shape (rows,) or (rows, columns); rows are in order of time within a group,
    and groups may lie among one another.
    """
    size = len(group)
    if not size:
        return np.zeros_like(values)
    order = np.argsort(group, kind="stable")
    sorted_group = group[order]
    starts = np.flatnonzero(np.r_[True, sorted_group[1:] != sorted_group[:-1]])
    ends = np.r_[starts[1:], size]
    own = np.repeat(np.arange(len(starts)), ends - starts)
    place = np.arange(size)
    low = np.maximum(place - reach, starts[own])
    high = np.minimum(place + reach + 1, ends[own])
    sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values[order], axis=0)])
    width = (high - low).reshape(-1, *[1] * (values.ndim - 1))
    found = np.empty(values.shape)
    found[order] = (sums[high] - sums[low]) / width
    return found
