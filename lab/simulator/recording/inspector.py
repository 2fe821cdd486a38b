"""NCCL's Inspector: a line of JSON a collective that ended, with the time of the dump alone."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.lab.simulator.happened import OPS, Happened
from teller.lab.simulator.recording.columns import distinct, joined, number, picked, text_of
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import column

SINCE: Final = (2, 28, 3)
_SMALLEST: Final = 8192  # bytes; what is below is not recorded
_DUMP_NS: Final = 500_000_000
_NAMES: Final = {
    "all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast", "all_to_all": "AlltoAll",
}  # fmt: skip


def write_records(happened: Happened, recording: Recording, folder: Path) -> list[tuple[int, Path]]:
    """Write one file a rank; give whose is which."""
    found = []
    for rank, place in enumerate(happened.scene.places):
        host = happened.scene.hosts[place.host]
        pid = recording.pid(happened.scene, rank)
        path = folder / f"{host.name}-pid{pid}.log"
        path.write_bytes(text_of(_records(happened, recording, rank)))
        found.append((rank, path))
    return found


def _records(happened: Happened, recording: Recording, rank: int) -> pa.Array:
    joins, scene = happened.joins[rank], happened.scene
    place = scene.places[rank]
    names = np.array([OPS[op] in _NAMES for op in range(len(OPS))])
    rows = np.flatnonzero((joins.size_bytes >= _SMALLEST) & (joins.end_ns >= 0) & names[joins.op])
    each, which = distinct(column(joins, "group", rows), column(joins, "op", rows))
    heads, ops = [], []
    for g, op in each:
        group = scene.groups[g]
        nodes = len({scene.places[r].host for r in group.ranks})
        heads.append(
            f'{{"header":{{"id":"0x{group.comm:x}","rank":{group.ranks.index(rank)},"n_ranks":'
            f'{len(group.ranks)},"nnodes":{nodes}}},"metadata":{{"inspector_output_format_version":'
            '"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":'
        )
        ops.append(f'}},"coll_perf":{{"coll":"{_NAMES[OPS[op]]}","coll_sn":')
    dump = (joins.end_ns[rows] // _DUMP_NS + 1) * _DUMP_NS
    shown = scene.t0_epoch_ns + recording.clocks[place.host].at(dump)
    lasting_us = np.maximum((joins.end_ns[rows] - joins.arrival_ns[rows]) // 1000, 1)
    speed = np.round(joins.size_bytes[rows] / (lasting_us * 1000), 6)
    host = scene.hosts[place.host].name
    pid = recording.pid(scene, rank)
    return joined(
        picked(heads, which), number(shown // 1000), f',"hostname":"{host}","pid":{pid}',
        picked(ops, which), number(joins.seq[rows]), ',"coll_msg_size_bytes":',
        number(joins.size_bytes[rows]), ',"coll_exec_time_us":', number(lasting_us),
        ',"coll_timing_source":"kernel_gpu","coll_algobw_gbs":', pc.cast(speed, pa.string()),
        ',"coll_busbw_gbs":', pc.cast(speed, pa.string()), "}}\n",
    )  # fmt: skip
