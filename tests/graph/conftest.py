"""A tiny graph, made by hand, and every engine to keep it in."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller.graph.archive import RunEntry
from teller.graph.embedded import EmbeddedStore
from teller.graph.store import Store
from teller.graph.tables import fit, table_of
from teller.graph.workspace import Workspace

Rows = list[dict[str, object]]
Tables = dict[str, pa.Table]
MakeRun = Callable[[int], Tables]
ToFiles = Callable[[Mapping[str, pa.Table]], dict[str, list[Path]]]
MakeTable = Callable[[str, Sequence[Mapping[str, object]]], pa.Table]

ENGINES = ("embedded_store", pytest.param("neo4j_store", marks=pytest.mark.neo4j))


@pytest.fixture
def embedded_store(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedStore(tmp_path / "graph.lbdb", pool_bytes=128 << 20) as opened:
        yield opened


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest) -> Store:
    """Give an empty store, of each engine in turn."""
    opened: Store = request.getfixturevalue(request.param)
    return opened


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a workspace's folder with the tiny run 3, to be read by all tests."""
    folder = tmp_path_factory.mktemp("published")
    with Workspace(folder, write=True, project=_as_committed, pool_bytes=128 << 20) as workspace:
        staged = workspace.archive.stage()
        for name, table in tiny_run(3).items():
            pq.write_table(table, staged / f"{name}.parquet")
        entry = RunEntry(run_id=3, key="k", name="run 3", deployment="", generation="",
                         created_epoch_ns=3, inputs_digest="")  # fmt: skip
        workspace.archive.commit(entry, staged)
        workspace.rebuild()
    return folder


def _as_committed(generation: Path, scratch: Path) -> dict[str, list[Path]]:
    return {path.stem: [path] for path in sorted(generation.glob("*.parquet"))}


@pytest.fixture
def make_table() -> MakeTable:
    """Give the function that makes a table of the schema from a few rows."""
    return _table


@pytest.fixture
def make_run() -> MakeRun:
    """Give the function that makes the tiny run; its ids lie from run id × 10 000."""
    return tiny_run


@pytest.fixture
def to_files(tmp_path: Path) -> ToFiles:
    """Give the function that writes tables as Parquet files, those of spans in two parts."""
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    number = itertools.count()

    def write(tables: Mapping[str, pa.Table]) -> dict[str, list[Path]]:
        files: dict[str, list[Path]] = {}
        for name, table in tables.items():
            half = table.num_rows // 2 if name == "Span" else 0
            for part in (table.slice(0, half), table.slice(half)) if half else (table,):
                path = folder / f"{next(number)}.{name}.parquet"
                pq.write_table(part, path)
                files.setdefault(name, []).append(path)
        return files

    return write


def _table(name: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    kind = table_of(name).kind
    names = {n: None for row in rows for n in row}
    types = {f.name: f.type for f in kind.arrow}
    columns = {n: pa.array([row.get(n) for row in rows], types.get(n)) for n in names}
    return fit(pa.table(columns), kind)


def tiny_run(run: int) -> Tables:
    """Two ranks, two steps each; in step 1 rank 1 computes 500 ns longer and comes last.

    In each step `execute_model` calls `linear`, which launches `gemm`, and then launches
    `all_reduce`, which is one collective over both ranks.
    """
    base = run * 10_000
    cells = [(rank, step) for rank in (0, 1) for step in (0, 1)]
    rows: dict[str, Rows] = {
        "Run": [{"id": run, "name": f"run {run}", "t0_epoch_ns": 1_780_000_000_000_000_001}],
        "Input": [{"id": base + 5600 + r, "path": f"rank{r}.json", "rank": r, "format": "kineto",
                   "event_count": 14, "used": True} for r in (0, 1)],
        "Remark": [{"id": base + 5700, "path": "rank1.json", "place": "byte 9", "text": "cut off",
                    "remedy": "record again"}],
        "Host": [{"id": base + 5500 + r, "name": f"node-{r}"} for r in (0, 1)],
        "Rank": [{"id": base + 5400 + r, "rank": r, "host": f"node-{r}"} for r in (0, 1)],
        "Step": [_step(base, rank, step) for rank, step in cells],
        "Iteration": [{"id": base + 5100 + s, "step_index": s, "start_ns": s * 10_000,
                       "end_ns": s * 10_000 + 4_000 + 500 * s, "dur_ns": 4_000 + 500 * s,
                       "skew_ns": 500 * s, "last_rank": 1} for s in (0, 1)],
        "Span": [span for rank, step in cells for span in _spans(base, rank, step)],
        "Collective": [{"id": base + 5200 + s, "op": "all_reduce", "seq": s, "size_bytes": 1 << 20,
                        "skew_ns": 500 * s, "pure_ns": 1_000, "last_rank": 1, "ranks_seen": 2}
                       for s in (0, 1)],
        "ProcessGroup": [{"id": base + 5300, "name": "tp", "world_size": 2}],
        "LogLine": [{"id": base + 5900, "rank": 1, "level": "WARNING", "text": "slow 'gemm'\n",
                     "time_ns": 10_600},
                    {"id": base + 5901, "rank": 0, "text": "7 is late", "time_ns": 10_700,
                     "request": "7", "step_index": 1, "tied_by": "request", "confidence": 0.9}],
        "Request": [{"id": base + 5950, "name": "7", "start_ns": 9_000, "end_ns": 15_000,
                     "ttft_ns": 1_500, "status": "ok"}],
        "Sample": [{"id": base + 5960, "name": "slo.ttft_ns", "value": 1_000.0}],
        "Finding": [{"id": base + 5800, "class": "slow_rank", "title": "Rank 1 is slow",
                     "severity": "high", "confidence": 0.9, "culprit_kind": "rank",
                     "culprit": "rank 1", "excess_ns": 500, "share": 0.1, "ruleset": "tiny"}],
    }  # fmt: skip
    for label in rows:
        rows[label] = [{"run_id": run} | row for row in rows[label]]
    rows["Operator"] = [{"id": 7, "run_id": 0, "name": "gemm", "family": "gemm"}]
    rows |= _relations(base, run, cells)
    return {name: _table(name, table) for name, table in rows.items()}


def _step(base: int, rank: int, step: int) -> dict[str, object]:
    late = 500 * rank * step
    return {
        "id": base + 5000 + rank * 10 + step, "rank": rank, "step_index": step, "phase": "decode",
        "start_ns": step * 10_000, "end_ns": step * 10_000 + 4_000 + 500 * step,
        "dur_ns": 4_000 + 500 * step, "own_ns": 2_000 + late, "excess_ns": late,
    }  # fmt: skip


def _spans(base: int, rank: int, step: int) -> Rows:
    start, late = step * 10_000, 500 * rank * step
    wait = 500 * step - late
    shapes = (  # name, layer, start, duration, own time, depth
        ("execute_model", "engine", 0, 1_000, 100, 0),
        ("linear", "framework", 100, 400, 200, 1),
        ("cudaLaunchKernel", "runtime", 200, 100, 100, 2),
        ("gemm", "device", 600, 2_000 + late, 2_000 + late, 0),
        ("cudaLaunchKernel", "runtime", 700, 100, 100, 1),
        ("all_reduce", "device", 3_000 + late, 1_000 + wait, 1_000, 0),
    )
    return [{
        "id": base + rank * 100 + step * 10 + place, "rank": rank, "step_index": step,
        "name": name, "operator": name, "family": "gemm" if name == "gemm" else None,
        "layer": layer, "lane": "stream 7" if layer == "device" else "thread 1",
        "stream": 7 if layer == "device" else None, "start_ns": start + at,
        "end_ns": start + at + dur, "dur_ns": dur, "own_ns": own, "depth": depth,
        "excess_ns": late if name == "gemm" else 0, "late_ns": late if name == "all_reduce" else 0,
        "input_id": base + 5600 + rank,
    } for place, (name, layer, at, dur, own, depth) in enumerate(shapes)]  # fmt: skip


def _relations(base: int, run: int, cells: list[tuple[int, int]]) -> dict[str, Rows]:
    def of(cell: tuple[int, int], place: int) -> int:
        return base + cell[0] * 100 + cell[1] * 10 + place

    def step(cell: tuple[int, int]) -> int:
        return base + 5000 + cell[0] * 10 + cell[1]

    return {
        "HAS_RANK.Run.Rank": [_edge(run, base + 5400 + r) for r in (0, 1)],
        "ON_HOST.Rank.Host": [_edge(base + 5400 + r, base + 5500 + r) for r in (0, 1)],
        "RAN.Rank.Step": [_edge(base + 5400 + c[0], step(c)) for c in cells],
        "FOLLOWED_BY.Step.Step": [_edge(step((r, 0)), step((r, 1))) for r in (0, 1)],
        "ON_RANK.Iteration.Step": [_edge(base + 5100 + c[1], step(c)) for c in cells],
        "IN_STEP.Span.Step": [_edge(of(c, p), step(c)) for c in cells for p in range(6)],
        "CHILD.Span.Span": [_edge(of(c, a), of(c, b)) for c in cells
                            for a, b in ((0, 1), (1, 2), (0, 4))],
        "LAUNCHED.Span.Span": [_edge(of(c, a), of(c, b)) for c in cells
                               for a, b in ((2, 3), (4, 5))],
        "NEXT.Span.Span": [_edge(of(c, 3), of(c, 5)) | {"gap_ns": 400} for c in cells],
        "IN_COLLECTIVE.Span.Collective": [
            _edge(of(c, 5), base + 5200 + c[1]) | {
                "arrival_ns": c[1] * 10_000 + 3_000 + 500 * c[0] * c[1],
                "host_arrival_ns": c[1] * 10_000 + 700, "pure_ns": 1_000,
                "wait_ns": 500 * c[1] * (1 - c[0]), "arrival_order": c[0],
            } for c in cells],
        "IN_GROUP.Collective.ProcessGroup": [_edge(base + 5200 + s, base + 5300) for s in (0, 1)],
        "JOINED.Rank.Collective": [
            _edge(base + 5400 + c[0], base + 5200 + c[1]) | {"seq": c[1], "state": "completed"}
            for c in cells],
        "MEMBER_OF.Rank.ProcessGroup": [_edge(base + 5400 + r, base + 5300) | {"group_rank": r}
                                        for r in (0, 1)],
        "TALKED_TO.Rank.Rank": [
            _edge(base + 5400 + r, base + 5401 - r) | {
                "group_name": "tp", "op": op, "count": 2, "size_bytes": 2 << 20,
                "pure_p50_ns": 1_000, "transport": "assumed ring"}
            for r in (0, 1) for op in ("all_reduce", "all_gather")],
        "DURING.LogLine.Step": [_edge(base + 5900, step((1, 1))), _edge(base + 5901, step((0, 1)))],
        "SERVED_IN.Request.Iteration": [
            _edge(base + 5950, base + 5100 + s) | {"tied_by": "time", "confidence": 0.9}
            for s in (0, 1)],
        "PART_OF.Input.Run": [_edge(base + 5600 + r, run) for r in (0, 1)],
        "ON_INPUT.Remark.Input": [_edge(base + 5700, base + 5601)],
        "IN_RUN.Finding.Run": [_edge(base + 5800, run)],
        "BLAMES.Finding.Rank": [_edge(base + 5800, base + 5401)],
        "SHOWN_BY.Finding.Span": [_edge(base + 5800, of((1, 1), 3)) | {"role": "cause"}],
        "SHOWN_BY.Finding.Step": [_edge(base + 5800, step((1, 1))) | {"role": "effect"}],
        "SHOWN_BY.Finding.Rank": [_edge(base + 5800, base + 5400) | {"role": "victim"}],
    }  # fmt: skip


def _edge(src: int, dst: int) -> dict[str, object]:
    return {"src": src, "dst": dst}
