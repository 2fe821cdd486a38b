"""Who is who, and which captures are one run."""

import itertools
from typing import Any

import pytest

from teller.ingest import runs
from teller.ingest.runs import Capture
from teller.ingest.source import Facts
from teller.ingest.who import Told, identify

S = 1_000_000_000


class Source:
    def __init__(self, facts: Facts, device_count: int = 1) -> None:
        self.facts, self.device_count = facts, device_count


def ranks(paths: list[str], told: Told | None = None) -> list[tuple[int, str]]:
    found = identify([Source(Facts(p, "kineto")) for p in paths], told or Told())
    return [(i.rank, i.rank_source) for i in found if i]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["rank-0.pt.trace.json.gz", "rank-1.pt.trace.json.gz"], [0, 1]),
        (["rank0_trace.json", "rank12_trace.json"], [0, 12]),
        (["node-a_dp0_pp0_tp1_rank5.json", "node-b_dp0_pp0_tp1_rank7.json"], [5, 7]),
        (["pax_proc3.zip", "pax_proc0.zip"], [3, 0]),
        (["report.2.sqlite", "report.4.sqlite"], [2, 4]),
    ],
)
def test_the_file_name_tells_the_rank_where_nothing_else_does(
    names: list[str], expected: list[int]
) -> None:
    assert ranks(names) == [(rank, "file name") for rank in expected]


def test_the_users_regex_wins_over_the_header() -> None:
    source = Source(Facts("w7/trace.json", "kineto", rank=0, rank_source="header"))
    found = identify([source], Told(rank_regex=r"w(?P<rank>\d+)"))
    assert [(i.rank, i.rank_source) for i in found if i] == [(7, "--rank-regex")]


def test_processes_without_a_rank_are_counted_by_device() -> None:
    sources = [
        Source(Facts("a.sqlite", "nsys_sqlite", pid=p, device_index=d))
        for p, d in ((11, 1), (10, 0))
    ]
    assert [(i.rank, i.rank_source) for i in identify(sources, Told()) if i] == [
        (1, "device order"),
        (0, "device order"),
    ]


def test_a_helper_process_beside_ranks_is_no_rank() -> None:
    sources = [
        Source(Facts("a.sqlite", "nsys_sqlite", pid=1, rank=0)),
        Source(Facts("a.sqlite", "nsys_sqlite", pid=2), device_count=0),
    ]
    assert [i is None for i in identify(sources, Told())] == [False, True]


def test_a_prefix_that_repeats_over_files_is_the_host() -> None:
    paths = ["ip-1_rank0.json", "ip-1_rank1.json", "ip-2_rank2.json", "ip-2_rank3.json"]
    found = identify([Source(Facts(p, "kineto")) for p in paths], Told())
    assert [i.host for i in found if i] == ["ip-1", "ip-1", "ip-2", "ip-2"]
    alike = identify([Source(Facts(f"trace_rank{n}.json", "kineto")) for n in (0, 1)], Told())
    assert [i.host for i in alike if i] == ["unknown", "unknown"]


def capture(rank: int, first: float, last: float, **more: object) -> Capture:
    given: dict[str, Any] = {"anchored": True, "digest": f"{rank}{first}", "weight": 5}
    given |= {"order": (rank, first)} | more
    return Capture(rank=rank, first_ns=int(first * S), last_ns=int(last * S), **given)


def grouped(captures: list[Capture]) -> list[set[tuple[int, float]]]:
    return [
        {(captures[i].rank, captures[i].first_ns / S) for i in run.captures}
        for run in runs.group(captures)
    ]


def test_windows_that_overlap_are_one_run_in_any_order() -> None:
    captures = [capture(0, 0, 10), capture(1, 1, 11), capture(2, 0.5, 9)]
    for order in itertools.permutations(captures):
        assert grouped(list(order)) == [{(0, 0), (1, 1), (2, 0.5)}]


def test_one_rank_in_two_windows_is_two_runs() -> None:
    captures = [capture(0, 0, 10), capture(0, 900, 910), capture(1, 1, 9), capture(1, 901, 909)]
    for order in itertools.permutations(captures):
        assert grouped(list(order)) == [{(0, 0), (1, 1)}, {(0, 900), (1, 901)}]


def test_one_rank_twice_in_one_window_is_a_duplicate_and_the_fuller_file_is_used() -> None:
    captures = [
        capture(0, 0, 10, weight=3),
        capture(0, 0, 10.1, weight=9, digest="b", order=(0, 1)),
    ]
    for order in itertools.permutations(captures):
        (run,) = runs.group(list(order))
        assert [order[i].weight for i in run.captures] == [9]
        assert len(run.duplicates) == 1


def test_five_seconds_of_skew_still_make_one_run_where_the_world_says_so() -> None:
    world = {"world_size": 2}
    (run,) = runs.group([capture(0, 0, 1, **world), capture(1, 5, 6, **world)])
    assert len(run.captures) == 2
    assert len(run.skewed) == 1
    assert len(runs.group([capture(0, 0, 1), capture(1, 5, 6)])) == 2


def test_a_manifest_decides() -> None:
    captures = [capture(0, 0, 10, manifest="a"), capture(1, 0, 10, manifest="b")]
    assert sorted(r.key for r in runs.group(captures)) == ["a", "b"]


def test_captures_without_a_clock_join_only_what_lacks_them() -> None:
    loose = {"anchored": False}
    strangers = [capture(0, 0, 5, alike="a#", **loose), capture(1, 0, 5, alike="b", **loose)]
    assert len(runs.group(strangers)) == 2
    alike = [capture(0, 0, 5, alike="rank#", **loose), capture(1, 9, 12, alike="rank#", **loose)]
    assert len(runs.group(alike)) == 1
    world = [capture(0, 0, 5, world_size=2), capture(1, 0, 5, **loose)]
    assert len(runs.group(world)) == 1
