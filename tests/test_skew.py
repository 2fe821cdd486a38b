"""Clocks that are wrong do not change who is to blame, and the answer says how wrong they are."""

import gzip
import sqlite3
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from teller import pipeline
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.pipeline import Options, Silent

NAMES = ("rank0.nsys.sqlite", "rank1.nsys.sqlite")


@pytest.fixture
def skewed(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The demo run's traces, the session of rank 1 said to have begun later than it did."""
    folder = tmp_path / "run"
    folder.mkdir()
    with as_file(files("teller").joinpath("demo/run")) as demo:
        for name in NAMES:
            with gzip.open(demo / f"{name}.gz") as packed:
                (folder / name).write_bytes(packed.read())
    with sqlite3.connect(folder / NAMES[1]) as base:
        base.execute(
            "update TARGET_INFO_SESSION_START_TIME set utcEpochNs = utcEpochNs + ?",
            (request.param,),
        )
    return folder


@pytest.mark.parametrize("skewed", [5_000_000, -4_700_000, 5_000_000_000], indirect=True)
def test_the_same_straggler_and_the_offset_recovered(
    skewed: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    planted = request.node.callspec.params["skewed"]
    workspace = Workspace(tmp_path / "workspace", project=project)
    said = pipeline.diagnose([skewed], workspace, Options(), Silent())
    worst = said.findings[0]
    assert (worst.klass, worst.culprit.ranks) == ("slow_operator", (1,))
    assert worst.culprit.operators == ("layers.2.self_attn.o_proj",)
    with workspace.reader() as store:
        offset = store.query("MATCH (r:Rank) WHERE r.rank = 1 RETURN r.clock_offset_ns AS ns")
    assert abs(offset["ns"][0].as_py() + planted) < 20_000
    skew = next(f for f in said.findings if f.klass == "clock_skew")
    assert skew.severity == "low"
    assert "rank 1" in skew.title
    words = [q.what for q in said.data_quality if "clock skew" in q.what]
    assert len(words) == 1
    assert "ahead of" in words[0] if planted > 0 else "behind" in words[0]
