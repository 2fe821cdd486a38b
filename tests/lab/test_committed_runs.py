"""The labelled runs that come with the code: small, whole, read without a remark on their form."""

from pathlib import Path

import pytest

from teller.graph.classes import classes
from teller.ingest.discover import discover
from teller.lab import sets
from teller.lab.manifest import read_manifest
from teller.lab.truth import read_truth

RUNS = Path(__file__).parent.parent / "data" / "runs"
FOLDERS = sorted(p.parent for p in RUNS.glob("*/*/manifest.json"))
MOST_BYTES = 15 * 2**20


def test_all_of_them_are_small() -> None:
    assert sum(p.stat().st_size for p in RUNS.rglob("*") if p.is_file()) < MOST_BYTES


def test_the_simulated_ones_are_the_small_set() -> None:
    names = {p.name for p in FOLDERS if p.parent.name == "simulated"}
    assert names == {m.name for m in sets.members("small")} == set(sets.hashes()["small"])


def test_the_real_ones_have_every_kind_of_the_testbed_that_can_be_made_here() -> None:
    real = [read_truth(p) for p in FOLDERS if p.parent.name == "testbed"]
    made = {e.fault for t in real for e in t.episodes}
    known = {kind for c in classes().values() for kind in c.testbed} - {"healthy"}
    assert made >= known


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_folder_is_recognised_whole_and_its_truth_lies_beside_it(folder: Path) -> None:
    manifest, truth = read_manifest(folder), read_truth(folder)
    found = discover([folder])
    listed = {f.path for f in manifest.files}
    assert {p.name for p in folder.iterdir()} == listed | {"manifest.json"}
    assert found.others == ()
    assert {Path(c.name).name for c in found.candidates} == listed
    assert truth.run == manifest.run == folder.name
    assert {e.class_ for e in truth.episodes} <= set(classes())
