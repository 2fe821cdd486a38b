"""Records through the whole pipeline: the same graph however they come, and nothing is lost."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Ingested, Options, Silent

STATS = (
    "(APIServer pid=100) INFO 04-15 07:{m:02d}:{s:02d} [loggers.py:271] Engine 000: Avg prompt "
    "throughput: 40.0 tokens/s, Avg generation throughput: 12{s}.8 tokens/s, Running: 3 reqs, "
    "Waiting: 0 reqs, GPU KV cache usage: 9.1%, Prefix cache hit rate: 3.0%\n"
)


def vllm(lines: int) -> str:
    return "".join(STATS.format(m=i // 6, s=i % 6 * 10) for i in range(lines))


def nccl(host: str, first: int, ranks: int = 4) -> str:
    lines = []
    for dev in range(2):
        rank = first + dev
        head = f"{host}:{700 + dev}:{1100 + dev} [{dev}] NCCL INFO "
        lines += [
            f"{head}Using network IB",
            f"{head}ncclCommInitRank comm 0xbeac{rank} rank {rank} nranks {ranks} cudaDev {dev} "
            f"nvmlDev {dev} busId {rank + 1}b000 commId 0x122b598615dcbe81 - Init START",
            f"{head}Channel 00/0 : {rank}[{dev}] -> {(rank + 1) % ranks}[{1 - dev}] [send] via "
            "NET/IB/0/GDRDMA",
            f"{head}ncclCommInitRank comm 0xbeac{rank} rank {rank} nranks {ranks} cudaDev {dev} "
            f"nvmlDev {dev} busId {rank + 1}b000 commId 0x122b598615dcbe81 - Init COMPLETE",
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    (made / "vllm.log").write_text(vllm(6))
    (made / "node-a.log").write_text(nccl("node-a", 0))
    (made / "node-b.log").write_text(nccl("node-b", 2))
    return made


def ingest(folder: Path, workspace: Path) -> Ingested:
    return pipeline.ingest([folder], Workspace(workspace, project=project), Options(), Silent())


def ask(workspace: Path, text: str) -> list[dict[str, Any]]:
    with Workspace(workspace, project=project).reader() as store:
        rows: list[dict[str, Any]] = store.query(text, {}).to_pylist()
        return rows


def graph(workspace: Path) -> dict[str, Any]:
    """Give all that the graph has of lines, samples, ranks and edges."""
    return {
        name: sorted(map(str, ask(workspace, text)))
        for name, text in {
            "runs": "MATCH (r:Run) RETURN r.id AS id, r.world_size AS n",
            "lines": "MATCH (l:LogLine) RETURN l.id AS id, l.text AS text, l.time_ns AS at, "
            "l.rank AS rank, l.host AS host, l.line AS line, l.input_id AS input",
            "samples": "MATCH (q:Sample) RETURN q.id AS id, q.name AS name, q.value AS value, "
            "q.host AS host, q.rank AS rank",
            "ranks": "MATCH (r:Rank)-[:ON_HOST]->(h:Host) RETURN r.id AS id, r.rank AS rank, "
            "h.name AS host",
            "edges": "MATCH (a:Rank)-[t:TALKED_TO]->(b:Rank) RETURN a.rank AS a, b.rank AS b, "
            "t.transport AS transport",
            "members": "MATCH (a:Rank)-[m:MEMBER_OF]->(g:ProcessGroup) RETURN a.rank AS a, "
            "g.id AS g, m.group_rank AS place",
        }.items()
    }


def test_logs_of_two_hosts_are_four_ranks_and_a_ring(folder: Path, tmp_path: Path) -> None:
    ingest(folder, tmp_path / "w")
    found = ask(
        tmp_path / "w",
        "MATCH (a:Rank)-[t:TALKED_TO]->(b:Rank) RETURN a.rank AS src, a.host AS host, "
        "b.rank AS dst, t.transport AS over ORDER BY src",
    )
    assert [(r["src"], r["host"], r["dst"], r["over"]) for r in found] == [
        (0, "node-a", 1, "NET/IB/GDRDMA"), (1, "node-a", 2, "NET/IB/GDRDMA"),
        (2, "node-b", 3, "NET/IB/GDRDMA"), (3, "node-b", 0, "NET/IB/GDRDMA"),
    ]  # fmt: skip


def test_twice_is_the_same_as_once(folder: Path, tmp_path: Path) -> None:
    ingest(folder, tmp_path / "w")
    once = graph(tmp_path / "w")
    ingest(folder, tmp_path / "w")
    assert graph(tmp_path / "w") == once


def test_a_copy_elsewhere_is_the_same_run(folder: Path, tmp_path: Path) -> None:
    ingest(folder, tmp_path / "w")
    once = graph(tmp_path / "w")
    copy = tmp_path / "other" / "place"
    shutil.copytree(folder, copy)
    assert len(ingest(copy, tmp_path / "w").runs) == 1
    assert graph(tmp_path / "w") == once


def test_files_one_after_the_other_end_as_all_at_once(folder: Path, tmp_path: Path) -> None:
    ingest(folder, tmp_path / "all")
    part = tmp_path / "part"
    part.mkdir()
    names = ["node-a.log", "node-b.log", "vllm.log"]
    random.Random(4).shuffle(names)
    ids = set()
    for name in names:
        shutil.copy2(folder / name, part / name)
        ids |= {r.id for r in ingest(part, tmp_path / "step").runs}
    assert len(ids) == 1  # what joined later changed no id of the run
    whole, steps = graph(tmp_path / "all"), graph(tmp_path / "step")
    assert [len(v) for v in whole.values()] == [len(v) for v in steps.values()]


def test_a_log_that_grows_keeps_its_lines(folder: Path, tmp_path: Path) -> None:
    first = ingest(folder, tmp_path / "w").runs
    lines = "MATCH (l:LogLine) RETURN l.id AS id, l.text AS text ORDER BY id"
    before = {r["id"]: r["text"] for r in ask(tmp_path / "w", lines)}
    (folder / "vllm.log").write_text(vllm(9))
    again = ingest(folder, tmp_path / "w").runs
    after = {r["id"]: r["text"] for r in ask(tmp_path / "w", lines)}
    assert [r.id for r in again] == [r.id for r in first]
    assert len(after) == len(before) + 3
    assert before.items() <= after.items()


def test_a_baseline_is_a_run_of_its_own(folder: Path, tmp_path: Path) -> None:
    (folder / "baseline_vllm.log").write_text(vllm(12))
    ingest(folder, tmp_path / "w")
    runs = ask(
        tmp_path / "w",
        "MATCH (i:Input)-[:PART_OF]->(r:Run) "
        "RETURN i.path AS path, r.baseline AS healthy ORDER BY path",
    )
    assert [(r["path"], r["healthy"]) for r in runs] == [
        ("baseline_vllm.log", True), ("node-a.log", False), ("node-b.log", False),
        ("vllm.log", False),
    ]  # fmt: skip


def test_equal_files_of_two_hosts_are_two_inputs(folder: Path, tmp_path: Path) -> None:
    modules = "Module                  Size  Used by\nnvidia              56823808  91\n"
    for host in ("node-a", "node-b"):
        (folder / f"{host}.lsmod.txt").write_text(modules)
    ingest(folder, tmp_path / "w")
    found = ask(
        tmp_path / "w",
        "MATCH (q:Sample)-[:ABOUT]->(h:Host) WHERE q.name = 'host.module' "
        "RETURN h.name AS host, q.text AS name ORDER BY host",
    )
    assert [(r["host"], r["name"]) for r in found] == [("node-a", "nvidia"), ("node-b", "nvidia")]
