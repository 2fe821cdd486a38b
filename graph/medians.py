"""Medians of groups, by columns."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def codes(*columns: Ints) -> Ints:
    """Give a number to each distinct row of these columns."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, own = np.unique(column, return_inverse=True)
        _, code = np.unique(code * len(distinct) + own, return_inverse=True)
    numbered: Ints = code.astype(np.int64)
    return numbered


def leave_one_out_median(group: Ints, value: Floats) -> tuple[Floats, Ints]:
    """Give each row the median of the *other* rows of its group, and the group's size.

    nan where the row is alone in its group.
    """
    size = len(group)
    order = np.lexsort((value, group))
    sorted_group, sorted_value = group[order], value[order]
    first = np.flatnonzero(np.r_[True, sorted_group[1:] != sorted_group[:-1]]) if size else order
    count = np.diff(np.r_[first, size])
    row = np.repeat(np.arange(len(first)), count)
    place = np.arange(size) - first[row]
    others = count[row] - 1
    low, high = (others - 1) // 2, others // 2  # places among the others
    low, high = low + (low >= place), high + (high >= place)
    low, high = np.maximum(low, 0), np.minimum(high, others)
    middle = (sorted_value[first[row] + low] + sorted_value[first[row] + high]) / 2
    middle = np.where(others > 0, middle, np.nan)
    result, number = np.empty(size), np.empty(size, np.int64)
    result[order], number[order] = middle, count[row]
    return result, number
