"""Which sources step together: the replicas of a service that exchange nothing do not."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]


def replicas(places: Sequence[Mapping[str, int]], members: pa.Table) -> Ints:
    """Give each source the number of its replica: sources with one number have common steps.

    Data-parallel ranks that a collective joins (experts spread over them) are one replica; where
    not every source tells its place, all are taken as one. `members` are of `collectives.MEMBERS`.
    """
    if not all("dp" in one for one in places):
        return np.zeros(len(places), np.int64)
    label, own = np.unique([one["dp"] for one in places] or [0], return_inverse=True)
    shared = members.filter(pc.not_equal(members["matched_by"], "single"))
    _, number = np.unique(shared["number"].to_numpy(), return_inverse=True)
    of = own[shared["source"].to_numpy()]
    while True:  # a label travels one collective further each time
        lowest = np.full(len(number), np.iinfo(np.int64).max)
        np.minimum.at(lowest, number, label[of])
        before = label.copy()
        np.minimum.at(label, of, lowest[number])
        if np.array_equal(before, label):
            together: Ints = label[own][: len(places)]
            return together
