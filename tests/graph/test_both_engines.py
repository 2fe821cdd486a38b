"""Both engines give the same answers: to every named query, and to whatever the rules ask."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from teller import pipeline
from teller.graph import queries
from teller.graph.embedded import EmbeddedStore
from teller.graph.keep import rest
from teller.graph.neo4j import Neo4jStore
from teller.graph.project import project
from teller.graph.shared import SharedWorkspace
from teller.graph.store import Store
from teller.models import check
from teller.models.diagnose import judge
from teller.models.rule import rules
from teller.models.slices import slice_of
from tests.graph.alike import compared, rows

DEMO = Path(pipeline.__file__).with_name("demo") / "run"

pytestmark = [pytest.mark.neo4j, pytest.mark.slow]

# parameter: where its values come from in the run
SOME: Mapping[str, str] = {
    "step": "MATCH (n:Step) WHERE n.run_id = $run RETURN n.id AS id, n.dur_ns AS most",
    "span": "MATCH (n:Span) WHERE n.run_id = $run AND n.layer = 'runtime' "
            "RETURN n.id AS id, n.dur_ns AS most",
    "collective": "MATCH (n:Collective) WHERE n.run_id = $run "
                  "RETURN n.id AS id, coalesce(n.skew_ns, 0) AS most",
    "iteration": "MATCH (n:Iteration) WHERE n.run_id = $run RETURN n.id AS id, n.dur_ns AS most",
    "finding": "MATCH (n:Finding) WHERE n.run_id = $run RETURN n.id AS id, n.id AS most",
    "sample": "MATCH (n:Sample) WHERE n.run_id = $run RETURN n.id AS id, n.id AS most",
    "line": "MATCH (n:LogLine)-[:DURING]->(:Step) WHERE n.run_id = $run "
            "RETURN DISTINCT n.id AS id, n.id AS most",
}  # fmt: skip
MOST = " ORDER BY most DESC, id LIMIT 3"
FIXED: Mapping[str, object] = {
    "limit": 20, "ttft_ns": 1, "itl_ns": 1, "e2e_ns": 1, "share": 0.005, "rank": 1, "number": 1,
}  # fmt: skip


class Both(EmbeddedStore):
    """The embedded engine, which compares each of its answers with the other engine's."""

    other: Neo4jStore
    asked: set[str]
    differ: list[str]

    def query(self, text: str, params: Mapping[str, object] | None = None) -> pa.Table:
        mine = super().query(text, params)
        self.asked.add(text)
        try:
            self.differ += compared(mine, self.other.query(text, params), text)
        except Exception as err:  # all that goes wrong is told together
            self.differ.append(f"{text}: {err!r}")
        return mine


def both(paths: Sequence[Path], folder: Path, neo4j: Neo4jStore) -> tuple[Both, list[int]]:
    workspace = SharedWorkspace(folder, neo4j.address, project=project, rest=rest)
    said = pipeline.diagnose(paths, workspace, pipeline.Options(), pipeline.Silent())
    runs = [run.id for run in said.runs]
    store = Both(folder / "graph.lbdb", pool_bytes=512 << 20)
    for run in runs:
        entry = workspace.archive.entry(run)
        scratch = folder / str(run)
        scratch.mkdir()
        store.load(run, project(workspace.archive.folder_of(run), scratch))
        store.append(run, rest(workspace.archive, entry), skip_lost=True)
    store.other, store.asked, store.differ = neo4j, set(), []
    return store, runs


def ask_all_named(store: Store, run: int) -> None:
    values: dict[str, list[object]] = {name: [value] for name, value in FIXED.items()}
    values["run"] = [run]
    for name, text in SOME.items():
        values[name] = store.query(text + MOST, {"run": run})["id"].to_pylist() or [1]
    for name in ("step", "span"):
        values[f"{name}s"] = [values[name]]
    requests = queries.run(store, "requests", run=run).to_pylist()[:3]
    for name in queries.names():
        query = queries.get(name)
        if "request" in query.parameters:
            key = "name" if "run" in query.parameters else "id"
            values["request"] = [row[key] for row in requests] or [1 if key == "id" else "1"]
        if not values.keys() >= set(query.parameters):
            continue  # asked by stories of its own (test_queries), on both engines too
        for turn in range(max((len(values[p]) for p in query.parameters), default=1)):
            given = {p: values[p][turn % len(values[p])] for p in query.parameters}
            queries.run(store, name, **given)


def cut_slices(store: Both, run: int) -> None:
    """Cut the slices of the steps that lost most, and see that the other engine's are the same."""
    text = "MATCH (t:Step) WHERE t.run_id = $run RETURN t.id AS id, t.excess_ns AS most"
    if ids := store.query(text + MOST.replace("3", "20"), {"run": run})["id"].to_pylist():
        mine, other = slice_of(store, run, ids), slice_of(store.other, run, ids)
        for name in ("steps", "spans", "edges", "collectives", "lines", "counts"):
            assert rows(getattr(mine, name)) == rows(getattr(other, name)), name
            assert getattr(mine, name).schema == getattr(other, name).schema, name


def test_the_demo_run_is_the_same_on_both_engines(tmp_path: Path, neo4j_store: Neo4jStore) -> None:
    store, [run] = both([DEMO], tmp_path, neo4j_store)
    with store:
        assert store.counts() == neo4j_store.counts()
        ask_all_named(store, run)
        known = rules()
        for rule in known.values():  # each query once at least, with values of the right types
            check.flaws(rule, store, known)
        judge(store, run, baseline=run)
        cut_slices(store, run)
        assert len(store.asked) > len(queries.names()) + len(known)
        assert store.differ == []


@pytest.mark.parametrize(
    "names",
    [
        ["nsys_sqlite/nsysai_h100_2gpu_1s.sqlite"],
        ["kineto/hta_sampled_rank0.json.gz", "kineto/hta_sampled_rank1.json.gz"],
        ["nsys_parquet"],  # four ranks
    ],
)
def test_a_real_trace_is_the_same_on_both_engines(
    names: list[str], shared: Path, tmp_path: Path, neo4j_store: Neo4jStore
) -> None:
    store, [run] = both([shared / "traces" / name for name in names], tmp_path, neo4j_store)
    with store:
        assert store.counts() == neo4j_store.counts()
        ask_all_named(store, run)
        judge(store, run, baseline=run)
        cut_slices(store, run)
        assert store.differ == []
