"""Readers see a whole graph at any moment, and it follows the archive."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from teller.errors import BadUsage, NothingUsable, StoreBusy
from teller.graph import queries
from teller.graph.archive import Archive, RunEntry
from teller.graph.embedded import ENGINE
from teller.graph.published import Current
from teller.graph.store import Store, StoreUnreadable
from teller.graph.workspace import Workspace, default_folder

MakeRun = Callable[[int], dict[str, pa.Table]]
MakeTable = Callable[[str, Sequence[Mapping[str, object]]], pa.Table]
Small = Callable[[int, str], dict[str, pa.Table]]

POOL = 128 << 20

WRITER = """
import os, shutil, sys
from pathlib import Path
import msgspec
import pyarrow.parquet as pq
from teller.graph import queries
from teller.graph.archive import Archive, RunEntry
from teller.graph.workspace import Workspace
root, tables, last, name = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
steps = iter(range(10**6))
def counted(step):
    def run(*args, **kwargs):
        if next(steps) == last:
            os._exit(9)
        return step(*args, **kwargs)
    return run
def project(generation, scratch):
    return {p.stem: [p] for p in sorted(generation.glob("*.parquet"))}
with Workspace(root, write=True, project=project, pool_bytes=128 << 20) as workspace:
    os.replace, os.rename, os.unlink = map(counted, (os.replace, os.rename, os.unlink))
    shutil.rmtree, shutil.copyfile = map(counted, (shutil.rmtree, shutil.copyfile))
    staged = workspace.archive.stage()
    for path in tables.iterdir():
        shutil.copy(path, staged)
    entry = RunEntry(run_id=3, key="k", name=name, deployment="", generation="",
                     created_epoch_ns=3, inputs_digest="")
    workspace.archive.commit(entry, staged)
    workspace.publish(3, project(workspace.archive.folder_of(3), root))
    if last < 0:
        os._exit(9)
"""


def project(generation: Path, scratch: Path) -> dict[str, list[Path]]:
    assert scratch.is_dir()
    return {path.stem: [path] for path in sorted(generation.glob("*.parquet"))}


def opened(folder: Path, *, write: bool = False, heal: bool = True) -> Workspace:
    return Workspace(folder, write=write, project=project if heal else None, pool_bytes=POOL)


def commit(workspace: Workspace, run_id: int, tables: Mapping[str, pa.Table]) -> None:
    staged = workspace.archive.stage()
    for name, table in tables.items():
        pq.write_table(table, staged / f"{name}.parquet")
    entry = RunEntry(
        run_id=run_id, key="k", name=f"run {run_id}", deployment="chat", generation="",
        created_epoch_ns=run_id, inputs_digest="",
    )  # fmt: skip
    workspace.archive.commit(entry, staged)


def ingest(workspace: Workspace, run_id: int, tables: Mapping[str, pa.Table]) -> None:
    commit(workspace, run_id, tables)
    workspace.publish(run_id, project(workspace.archive.folder_of(run_id), workspace.folder))


def hosts(store: Store) -> list[str]:
    found = store.query("MATCH (h:Host) RETURN h.name AS name ORDER BY name")
    return [str(name) for name in found["name"].to_pylist()]


def graphs(folder: Path) -> list[str]:
    return sorted(path.suffix for path in (folder / "graph").iterdir())


@pytest.fixture
def small(make_table: MakeTable) -> Small:
    """Give the function that makes a run of one host with that name."""
    return lambda run, host: {
        "Run": make_table("Run", [{"id": run, "run_id": run}]),
        "Host": make_table("Host", [{"id": run * 100, "run_id": run, "name": host}]),
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with opened(tmp_path / "w", write=True) as made:
        yield made


def test_an_empty_workspace_says_what_to_do(tmp_path: Path, workspace: Workspace) -> None:
    with pytest.raises(NothingUsable, match="teller ingest"):
        workspace.reader()
    with pytest.raises(NothingUsable, match="teller ingest"):
        opened(tmp_path / "nowhere").reader()
    assert not (tmp_path / "nowhere").exists()


def test_a_published_run_is_read(workspace: Workspace, make_run: MakeRun) -> None:
    ingest(workspace, 3, make_run(3))
    with opened(workspace.folder).reader() as store:
        assert store.runs() == [3]
        assert store.counts()["Span"] == 24
        with pytest.raises(BadUsage, match="read-only"):
            store.drop(3)
    assert graphs(workspace.folder) == ["", ".lbdb"]  # CURRENT and one file


def test_a_reader_keeps_the_state_it_opened(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    with opened(workspace.folder).reader() as before, workspace.changing() as store:
        store.append(3, {"Host": small(3, "b")["Host"].set_column(0, "id", pa.array([301]))})
        assert hosts(before) == ["a"]
        ingested = hosts(store)
        with opened(workspace.folder).reader() as during:
            assert hosts(during) == ["a"]
    assert ingested == ["a", "b"]
    with opened(workspace.folder).reader() as after:
        assert hosts(after) == ["a", "b"]


def test_a_reader_outlives_the_file_it_opened(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    with opened(workspace.folder).reader() as before:
        ingest(workspace, 4, small(4, "b"))
        ingest(workspace, 3, small(3, "c"))
        assert hosts(before) == ["a"]
    with workspace.reader() as after:
        assert hosts(after) == ["b", "c"]
    assert graphs(workspace.folder) == ["", ".lbdb"]


@pytest.mark.parametrize("heal", [True, False])
def test_a_run_that_changed_takes_the_place_of_its_old_state(
    tmp_path: Path, small: Small, heal: bool
) -> None:
    with opened(tmp_path, write=True, heal=heal) as workspace:
        ingest(workspace, 3, small(3, "a"))
        ingest(workspace, 4, small(4, "b"))
        ingest(workspace, 3, small(3, "changed"))
        with workspace.reader() as store:
            assert hosts(store) == ["b", "changed"]
            assert store.runs() == [3, 4]


def drop_and_fail(workspace: Workspace) -> None:
    with workspace.changing() as store:
        store.drop(3)
        assert hosts(store) == []
        _ = 1 / 0


def test_a_change_that_fails_is_not_seen(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    with pytest.raises(ZeroDivisionError):
        drop_and_fail(workspace)
    with workspace.reader() as after:
        assert hosts(after) == ["a"]
    assert graphs(workspace.folder) == ["", ".lbdb"]


def test_a_removed_run_leaves_the_others(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    ingest(workspace, 4, small(4, "b"))
    workspace.remove(3)
    with workspace.reader() as store:
        assert hosts(store) == ["b"]
    workspace.remove(4)
    with pytest.raises(NothingUsable):
        workspace.reader()


def damaged(folder: Path, how: str) -> None:
    pointer = folder / "graph" / "CURRENT"
    current = msgspec.json.decode(pointer.read_bytes(), type=Current)
    file = folder / "graph" / current.file
    if how == "pointer gone":
        pointer.unlink()
    elif how == "pointer cut":
        pointer.write_bytes(pointer.read_bytes()[:30])
    elif how == "file gone":
        file.unlink()
    elif how == "file cut":
        os.truncate(file, current.size_bytes // 2)
    elif how == "older engine":
        old = msgspec.structs.replace(current, engine="ladybug-0.21.0")
        pointer.write_bytes(msgspec.json.encode(old))
    elif how == "other tables":
        old = msgspec.structs.replace(current, schema="0")
        pointer.write_bytes(msgspec.json.encode(old))
    else:
        pointer.write_bytes(msgspec.json.encode(msgspec.structs.replace(current, runs=())))


@pytest.mark.parametrize(
    "how",
    ["pointer gone", "pointer cut", "file gone", "file cut", "older engine", "other tables",
     "behind the archive"],
)  # fmt: skip
def test_a_damaged_graph_is_made_again_from_the_archive(
    tmp_path: Path, small: Small, how: str
) -> None:
    with opened(tmp_path, write=True) as workspace:
        ingest(workspace, 3, small(3, "a"))
    damaged(tmp_path, how)
    if how != "behind the archive":
        with pytest.raises(StoreUnreadable, match="ingest the runs again"):
            opened(tmp_path, heal=False).reader()
    with opened(tmp_path).reader() as store:
        assert hosts(store) == ["a"]
    assert graphs(tmp_path) == ["", ".lbdb"]


def test_a_graph_can_be_rebuilt_at_will(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    ingest(workspace, 4, small(4, "b"))
    [before] = (workspace.folder / "graph").glob("*.lbdb")
    assert before.name.endswith(f"{ENGINE}.lbdb")
    workspace.rebuild()
    assert not before.exists()
    with workspace.reader() as store:
        assert hosts(store) == ["a", "b"]


def test_what_the_archive_has_beside_a_generation_comes_along(
    tmp_path: Path, small: Small, make_table: MakeTable
) -> None:
    def rest(archive: Archive, entry: RunEntry) -> dict[str, pa.Table]:
        finding = {"id": 1, "run_id": entry.run_id, "title": entry.name}
        blamed = [{"src": 1, "dst": 300}, {"src": 1, "dst": 7}]  # 7 is no host of this run
        return {
            "Finding": make_table("Finding", [finding]),
            "BLAMES.Finding.Host": make_table("BLAMES.Finding.Host", blamed),
        }

    with Workspace(tmp_path, write=True, project=project, rest=rest, pool_bytes=POOL) as made:
        ingest(made, 3, small(3, "a"))
        made.rebuild()
        with made.reader() as store:
            found = queries.run(store, "blamed", finding=1)
            assert found["name"].to_pylist() == ["a"]


def test_while_another_writes_an_older_graph_will_do(workspace: Workspace, small: Small) -> None:
    ingest(workspace, 3, small(3, "a"))
    commit(workspace, 4, small(4, "b"))
    with opened(workspace.folder).reader() as store:  # cannot bring it up: the lock is held
        assert hosts(store) == ["a"]
    with workspace.reader() as store:
        assert hosts(store) == ["a", "b"]


def test_a_second_writer_is_told_who_is_first(workspace: Workspace) -> None:
    with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
        opened(workspace.folder, write=True)
    workspace.close()
    opened(workspace.folder, write=True).close()


def test_only_a_writer_writes(tmp_path: Path) -> None:
    reader = opened(tmp_path)
    with pytest.raises(BadUsage, match="not open for writing"):
        reader.rebuild()
    with pytest.raises(BadUsage, match="not open for writing"), reader.changing():
        pass


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="cannot be written"):
        opened(tmp_path / "file", write=True)


def test_the_folder_is_the_named_one_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TELLER_WORKSPACE", raising=False)
    assert default_folder() == tmp_path / "teller"
    monkeypatch.setenv("TELLER_WORKSPACE", "named")
    assert default_folder() == Path("named")
    assert default_folder(Path("given")) == Path("given")


def write(root: Path, tables: Path, last: int, name: str) -> int:
    command = [sys.executable, "-c", WRITER, str(root), str(tables), str(last), name]
    return subprocess.run(command, env=os.environ, check=False).returncode


@pytest.mark.slow
def test_a_killed_writer_leaves_a_graph_that_follows_the_archive(
    tmp_path: Path, small: Small
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, table in small(3, "new").items():
        pq.write_table(table, tables / f"{name}.parquet")
    with opened(tmp_path / "before", write=True) as workspace:
        ingest(workspace, 3, small(3, "old"))
        ingest(workspace, 4, small(4, "other"))
    told = []
    for last in range(50):
        root = tmp_path / str(last)
        shutil.copytree(tmp_path / "before", root)
        code = write(root, tables, last, "new")
        name = opened(root).archive.entry(3).name
        with opened(root, heal=False).reader() as store:  # readers are served at any moment
            assert hosts(store) in (["old", "other"], ["new", "other"])
        with opened(root).reader() as store:
            assert hosts(store) == sorted([{"run 3": "old"}.get(name, name), "other"])
        opened(root, write=True).close()
        assert graphs(root) == ["", ".lbdb"]
        told.append((code, name))
        if code == 0:
            break
    assert [code for code, _ in told] == [9] * (len(told) - 1) + [0]
    assert {name for _, name in told[:-1]} == {"run 3", "new"}


@pytest.mark.slow
def test_a_dead_writer_holds_no_lock(tmp_path: Path, small: Small) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, table in small(3, "a").items():
        pq.write_table(table, tables / f"{name}.parquet")
    assert write(tmp_path / "w", tables, -1, "first") == 9
    with opened(tmp_path / "w", write=True) as workspace, workspace.reader() as store:
        assert hosts(store) == ["a"]
