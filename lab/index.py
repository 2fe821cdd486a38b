"""The index of a set: one row a run, with what can be counted of it without looking into it.

Probes ask whether these figures alone tell of a fault; they must not.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from teller.lab.simulator.produce import Produced

NAME: Final = "index.tsv"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Figures are of the folder; `classes` and `meant` are of its truth."""

    run: str
    root_seed: int
    twin: bool
    digest: str
    classes: str  # of the truth, joined by commas; "" for none
    meant: str  # classes that were intended
    engine: str
    model: str
    mode: str
    ranks: int
    tp: int
    pp: int
    dp: int
    hosts: int
    files: int
    total_bytes: int
    trace_bytes: int
    log_bytes: int
    log_lines: int
    spans: int
    lasted_ms: int


def row(made: Produced) -> Row:
    """Give the row of a run that was written."""
    extra = made.truth.extra
    files = [p for p in made.folder.iterdir() if p.is_file()]
    logs = [p for p in files if p.suffix in (".log", ".txt")]
    traces = [p for p in files if p.suffix == ".sqlite" or ".json" in p.name]
    return Row(
        run=made.truth.run, root_seed=made.truth.root_seed, twin=made.truth.twin_of is not None,
        digest=made.digest, classes=",".join(e.class_ for e in made.truth.episodes),
        meant=",".join(str(e.extra["intended_class"]) for e in made.truth.episodes),
        engine=extra["engine"], model=extra["model"], mode=extra["mode"],
        ranks=extra["tp"] * extra["pp"] * extra["dp"], tp=extra["tp"], pp=extra["pp"],
        dp=extra["dp"], hosts=extra["hosts"], files=len(files),
        total_bytes=_bytes(files), trace_bytes=_bytes(traces), log_bytes=_bytes(logs),
        log_lines=sum(p.read_bytes().count(b"\n") for p in logs), spans=made.spans,
        lasted_ms=extra["end_ns"] // 1_000_000,
    )  # fmt: skip


def _bytes(files: Sequence[Path]) -> int:
    return sum(p.stat().st_size for p in files)


def write(rows: Iterable[Row], path: Path) -> None:
    """Write an index, ordered by root and name."""
    ordered = sorted(rows, key=lambda r: (r.root_seed, r.twin))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, Row.__struct_fields__, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(msgspec.structs.asdict(r) for r in ordered)


def read(path: Path) -> list[Row]:
    """Give the rows of an index."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [msgspec.convert(r | {"twin": r["twin"] == "True"}, Row, strict=False) for r in rows]
