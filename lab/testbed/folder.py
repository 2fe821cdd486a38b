"""The run folder of a life: files that need no reader of ours, and nothing that tells the fault."""

import contextlib
import dataclasses
import gzip
import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from teller import __version__
from teller.lab.collect import nvtx_sqlite
from teller.lab.collect.nvtx_stream import Stream
from teller.lab.manifest import (
    EngineEntry,
    FileEntry,
    HostEntry,
    Manifest,
    RankEntry,
    write_manifest,
)
from teller.lab.testbed.calls import NOBODY
from teller.lab.testbed.labels import truth_of
from teller.lab.testbed.life import Lived
from teller.lab.testbed.recorded import Recorded
from teller.lab.testbed.settings import NAME, VERSION
from teller.lab.truth import Truth, write_truth

TOOL: Final = f"teller testbed {__version__}"
_COMM_DOMAIN: Final = "c10d"


def name_of(seed: int) -> str:
    """Give a new run's name, which tells nothing."""
    made = f"{seed} {time.time_ns()}".encode()
    return hashlib.blake2b(made, digest_size=6).hexdigest()


def write_run(
    life: Lived, ranks: Sequence[Recorded], out: Path, root_seed: int
) -> tuple[Path, Truth]:
    """Write the run folder of a life into `out`, and its truth beside it."""
    run = out / name_of(life.setup.seed)
    truth = truth_of(life, ranks, run.name, root_seed)
    run.mkdir(parents=True)
    files = [entry for one in ranks for entry in _of_rank(life, one, run)]
    for name, kind in (("client.jsonl", "client_jsonl"), ("metrics.jsonl", "host_metrics_jsonl")):
        zip_into(life.control / name, run / f"{name}.gz")
        files.append(FileEntry(path=f"{name}.gz", kind=kind))
    write_manifest(manifest_of(life, ranks, run.name, tuple(files)), run)
    write_truth(truth, run)
    return run, truth


def _of_rank(life: Lived, one: Recorded, run: Path) -> list[FileEntry]:
    rank, host = int(one.about["rank"]), str(one.about["host"])
    trace, calls, log = (
        f"rank{rank}.nsys.sqlite.gz", f"comm_rank{rank}.jsonl.gz", f"rank{rank}.log.gz"
    )  # fmt: skip
    plain = life.control / f"rank{rank}.sqlite"
    nvtx_sqlite.write([_with_calls(one)], plain)
    zip_into(plain, run / trace)
    with _zipped(run / calls) as out:
        out.write("".join(f"{json.dumps(call)}\n" for call in _calls(one)).encode())
    zip_into(life.control / f"rank{rank}.log", run / log)
    kinds = ((trace, "nsys_sqlite"), (calls, "comm_jsonl"), (log, "service_log"))
    return [FileEntry(path=path, kind=kind, rank=rank, host=host) for path, kind in kinds]


def _with_calls(one: Recorded) -> Stream:
    """Give the ranges, those of communication with what their calls say as payload.

    The n-th range of communication is that of the n-th call: one wrapper makes both.
    """
    events = one.stream.events
    numbers = [n for n, name in one.stream.domains.items() if name == _COMM_DOMAIN]
    rows = np.flatnonzero(np.isin(events["domain"].to_numpy(), numbers))
    told: list[str | None] = [None] * events.num_rows
    for row, payload in zip(rows.tolist(), _payloads(one), strict=True):
        told[row] = payload
    column = events.schema.get_field_index("json")
    said = events.set_column(column, "json", pa.array(told, pa.string()))
    threads = {int(tid): name for tid, name in one.about["threads"].items()}
    names = {**one.stream.threads, **threads}
    return dataclasses.replace(
        one.stream, events=said, threads=names, process=str(one.about["process"])
    )


def _payloads(one: Recorded) -> list[str]:
    rows = []
    for call in _calls(one):
        ranks = one.groups[str(call["group"])]
        told = {
            "Process Group Name": call["group"], "Process Group Ranks": ranks,
            "Seq": call["seq"], "Message size [bytes]": call["bytes"],
            "Rank": one.about["rank"], "No. of ranks": len(ranks),
        }  # fmt: skip
        if call["peer"] != NOBODY:
            told["Peer rank"] = call["peer"]
        rows.append(json.dumps(told, separators=(",", ":")))
    return rows


def _calls(one: Recorded) -> list[dict[str, int | str]]:
    """Give the calls as records: a dictionary a line."""
    columns = {name: column.tolist() for name, column in one.calls.items()}
    return [
        {"op": one.names[op], "group": one.names[group], "seq": seq, "peer": peer, "bytes": size,
         "t0": start, "t1": end}
        for start, end, op, group, seq, peer, size in zip(*columns.values(), strict=True)
    ]  # fmt: skip


def manifest_of(
    life: Lived, ranks: Sequence[Recorded], run: str, files: tuple[FileEntry, ...]
) -> Manifest:
    """Give the manifest of a folder with these files."""
    of = life.setup.service
    begun = datetime.fromtimestamp(life.load_ns / 1e9, UTC)
    hosts = dict(zip(life.hosts, life.addresses, strict=True))
    return Manifest(
        run=run,
        created=begun.isoformat(timespec="seconds").replace("+00:00", "Z"),
        tool=TOOL,
        hosts=tuple(HostEntry(name, address) for name, address in hosts.items()),
        ranks=tuple(
            RankEntry(rank=r, host=str(one.about["host"]), pid=int(one.about["pid"]),
                      tp=r % of.tp, pp=r // of.tp)
            for r, one in enumerate(ranks)
        ),
        engine=EngineEntry(NAME, VERSION),
        model=of.model(),
        files=files,
        log_time={"year": begun.year, "utc_offset_s": time.localtime(begun.timestamp()).tm_gmtoff},
    )  # fmt: skip


@contextlib.contextmanager
def _zipped(path: Path) -> Iterator[gzip.GzipFile]:
    # neither name nor time of the file, so that equal content gives equal bytes
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, 0) as out:
        yield out


def zip_into(source: Path, target: Path) -> None:
    """Write a file again, compressed."""
    with source.open("rb") as file, _zipped(target) as out:
        shutil.copyfileobj(file, out)
