"""Run folders of the simulator: the same order gives the same folder, and nothing in it tells."""

from pathlib import Path

from teller.lab.manifest import read_manifest
from teller.lab.simulator import draw
from teller.lab.simulator.draw import Layout, Wanted
from teller.lab.simulator.produce import produce
from teller.lab.simulator.simulate import Order
from teller.lab.truth import read_truth

WANTED = Wanted(engine="vllm", model="qwen2_5_0_5b", mode="graph", layout=Layout(2), steps=8)


def contents(folder: Path) -> dict[str, bytes]:
    """Give the files of a folder."""
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_run_made_twice_is_one_folder_with_the_same_files(tmp_path: Path) -> None:
    order = Order(6, ("slow_rank",), WANTED)
    first = produce(order, tmp_path)
    before = contents(first.folder)
    again = produce(order, tmp_path)
    assert (again.folder, again.digest) == (first.folder, first.digest)
    assert contents(again.folder) == before


def test_a_folder_and_its_files_do_not_tell_of_the_fault(tmp_path: Path) -> None:
    made = produce(Order(6, ("gil_contention",), WANTED), tmp_path)
    assert read_truth(made.folder).episodes[0].fault == "gil_contention"
    manifest = (made.folder / "manifest.json").read_text()
    words = ("gil", "fault", "truth", "cause", "episode")
    assert not [w for w in words if w in manifest.lower()]
    assert not [p for p in contents(made.folder) if "gil" in p]
    assert {f.path for f in read_manifest(made.folder).files} == set(contents(made.folder)) - {
        "manifest.json"
    }


def test_a_twin_is_named_by_the_truth_alone(tmp_path: Path) -> None:
    one, two = (
        produce(Order(6, ("slow_rank",), WANTED, twin=twin), tmp_path) for twin in (False, True)
    )
    assert two.truth.twin_of == one.folder.name
    assert one.truth.root_seed == two.truth.root_seed == 6
    assert one.folder.name not in (two.folder / "manifest.json").read_text()


def test_hosts_of_a_scene_have_names_of_their_own() -> None:
    for seed in range(40):
        scene = draw.scene(seed, Wanted(layout=Layout(8, hosts=2), model="qwen3_8b", gpu="h100"))
        assert len({h.name for h in scene.hosts}) == len({h.address for h in scene.hosts}) == 2
