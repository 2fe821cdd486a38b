"""Dumps of PyTorch's flight recorder: the last collectives of each rank, as pickle or JSON."""

import pickle
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.lab.simulator.happened import NEVER, OPS, Happened, Ints, Small
from teller.lab.simulator.recording.plan import Recording
from teller.lab.simulator.recording.seen import Flags

_KEPT: Final = 2000  # entries of the ring
_POLL_NS: Final = 100_000_000  # the watchdog looks so often
_NAMES: Final = {
    "all_reduce": "nccl:all_reduce", "all_gather": "nccl:_all_gather_base",
    "reduce_scatter": "nccl:_reduce_scatter_base", "all_to_all": "nccl:all_to_all",
    "broadcast": "nccl:broadcast",
}  # fmt: skip
_P2P: Final = (OPS.index("send"), OPS.index("recv"))
_TIMEOUT_MS: Final = 600_000


def write_dumps(happened: Happened, recording: Recording, folder: Path) -> list[tuple[int, Path]]:
    """Write a file for each rank whose process lived to the end; give whose is which."""
    found = []
    plain = recording.flight_recorder == "json"
    for rank in range(len(happened.scene.places)):
        if rank in happened.dead:
            continue
        path = folder / f"nccl_trace_rank_{rank}{'.json' if plain else ''}"
        dump = _dump(happened, recording, rank)
        if plain:
            path.write_bytes(msgspec.json.encode(_plain(dump)))
        else:
            path.write_bytes(pickle.dumps(dump, protocol=2))
        found.append((rank, path))
    return found


def _dump(happened: Happened, recording: Recording, rank: int) -> dict[str, Any]:
    groups = [(g, group) for g, group in enumerate(happened.scene.groups) if rank in group.ranks]
    numbers = {g: i for i, (g, _) in enumerate(groups)}
    library = "comm_lib_version" if recording.recorder_version == "2.10" else "nccl_version"
    described = {group.name: {"name": group.name, "desc": _desc(group.desc),
                              "ranks": str(list(group.ranks))} for _, group in groups}  # fmt: skip
    return {
        "version": recording.recorder_version, "pg_config": described, library: recording.nccl,
        "pg_status": {str(i): _status(happened, rank, g) for g, i in numbers.items()},
        "entries": _entries(happened, recording, rank, numbers),
    }  # fmt: skip


def _desc(desc: str) -> str:
    return "default_pg" if desc == "world" else desc


def _status(happened: Happened, rank: int, group: int) -> dict[str, int]:
    joins = happened.joins[rank]
    own = (joins.group == group) & ~np.isin(joins.op, _P2P)
    done = own & (joins.end_ns != NEVER)
    return {
        "last_enqueued_collective": int((joins.seq[own] + 1).max(initial=NEVER)),
        "last_started_collective": NEVER,
        "last_completed_collective": int((joins.seq[done] + 1).max(initial=NEVER)),
    }


def _entries(
    happened: Happened, recording: Recording, rank: int, numbers: dict[int, int]
) -> list[dict[str, Any]]:
    joins, place = happened.joins[rank], happened.scene.places[rank]
    clock, epoch = recording.clocks[place.host], happened.scene.t0_epoch_ns
    peer = np.isin(joins.op, _P2P)
    collective, p2p = (_counted(joins.group, some) for some in (~peer, peer))
    seen_ns = (joins.end_ns // _POLL_NS + 1) * _POLL_NS
    created, completed = epoch + clock.at(joins.host_ns), epoch + clock.at(seen_ns)
    thread = str(23456244000000 + 4096 * rank)
    made = []
    for row in range(max(0, len(joins.seq) - _KEPT), len(joins.seq)):
        group = happened.scene.groups[joins.group[row]]
        done = bool(joins.end_ns[row] != NEVER)
        shape = [[int(joins.elements[row])]]
        made.append({
            "record_id": row, "pg_id": numbers[int(joins.group[row])],
            "process_group": (group.name, _desc(group.desc)),
            "thread_name": "python3", "thread_id": thread,
            "collective_seq_id": int(collective[row]), "p2p_seq_id": int(p2p[row]),
            "op_id": row + 1, "profiling_name": _name(happened, rank, row),
            "time_created_ns": int(created[row]), "input_sizes": shape,
            "input_dtypes": ["BFloat16"], "output_sizes": shape, "output_dtypes": ["BFloat16"],
            "state": "completed" if done else "scheduled", "time_discovered_started_ns": None,
            "time_discovered_completed_ns": int(completed[row]) if done else None,
            "retired": done, "timeout_ms": _TIMEOUT_MS, "is_p2p": bool(peer[row]),
        })  # fmt: skip
    return made


def _counted(group: Small, some: Flags) -> Ints:
    """Count so far, by group, the rows that count."""
    counts = np.zeros(len(group), np.int64)
    for one in np.unique(group):
        own = group == one
        counts[own] = np.cumsum(some[own])
    return counts


def _name(happened: Happened, rank: int, row: int) -> str:
    joins = happened.joins[rank]
    word, peer = OPS[joins.op[row]], int(joins.peer[row])
    if word not in ("send", "recv"):
        return _NAMES[word]
    own = happened.scene.groups[joins.group[row]].ranks.index(rank)
    return f"nccl:{word} {own}{'->' if word == 'send' else '<-'}{peer}"


def _plain(dump: dict[str, Any]) -> dict[str, Any]:
    """Give a dump as the JSON of the older form: numbers as text, zeros for none."""
    made = dump | {
        "pg_status": {g: {k: str(v) for k, v in said.items()}
                      for g, said in dump["pg_status"].items()},
        "entries": [
            {k: 0 if v is None else v for k, v in entry.items()} for entry in dump["entries"]
        ],
    }  # fmt: skip
    return made if made["entries"] else {k: v for k, v in made.items() if k != "entries"}
