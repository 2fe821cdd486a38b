"""Which run a file of records belongs to."""

from teller.ingest.companions import Companion, Home, Window, settle


def companion(
    name: str,
    window: Window | None = None,
    *,
    comm: str = "",
    manifest: str = "",
    baseline: bool = False,
    digest: str = "",
    head: str = "",
) -> Companion:
    comms = frozenset({comm} if comm else ())
    return Companion(name, digest or name, head or name, window, comms, manifest, baseline)


def records(homes: list[Home]) -> list[list[int]]:
    return [sorted(home.records) for home in homes]


def test_what_lies_in_one_folder_is_one_run() -> None:
    files = [
        companion("a/vllm.log", (10, 20)),
        companion("a/gids.txt"),
        companion("a/x.csv", (90, 95)),
    ]
    assert records(settle(files, [])) == [[0, 1, 2]]


def test_logs_of_one_folder_that_are_days_apart_are_other_runs() -> None:
    day = 24 * 3600 * 1_000_000_000
    march = companion("a/march.log", (10, 20))
    may = companion("a/may.log", (60 * day, 60 * day + 10))
    state = companion("a/lsmod.txt")
    assert records(settle([march, may, state], [])) == [[0], [1, 2]]


def test_folders_of_other_times_are_other_runs() -> None:
    files = [companion("a/vllm.log", (10, 20)), companion("b/vllm.log", (90, 95))]
    assert records(settle(files, [])) == [[0], [1]]


def test_folders_of_hosts_are_one_run_where_their_times_meet() -> None:
    files = [companion("node-a/x.log", (10, 20)), companion("node-b/x.log", (12, 25))]
    assert records(settle(files, [])) == [[0, 1]]


def test_folders_that_share_a_communicator_are_one_run() -> None:
    files = [companion("node-a/x.log", comm="7f"), companion("node-b/x.log", comm="7f")]
    assert records(settle(files, [])) == [[0, 1]]


def test_a_folder_of_host_states_goes_with_its_neighbour() -> None:
    files = [companion("run/logs/x.log", (10, 20)), companion("run/state/lsmod.txt")]
    assert records(settle(files, [])) == [[0, 1]]


def test_a_baseline_is_never_one_run_with_what_is_compared_to_it() -> None:
    files = [companion("a/baseline.log", (10, 20), baseline=True), companion("a/now.log", (10, 20))]
    homes = settle(files, [])
    assert sorted((h.baseline, h.records) for h in homes) == [(False, [1]), (True, [0])]


def test_records_join_the_capture_whose_time_they_meet() -> None:
    first, second = Home([(0, 10)], {"a"}), Home([(50, 60)], {"a"})
    assert records(settle([companion("a/x.log", (52, 70))], [first, second])) == [[], [0]]


def test_a_log_beside_a_capture_is_about_it_whatever_its_clock_says() -> None:
    day = 24 * 3600 * 1_000_000_000
    log = companion("a/x.log", (60 * day, 60 * day + 10))
    assert records(settle([log], [Home([(0, 10)], {"a"}, captured=True)])) == [[0]]


def test_a_log_over_two_captures_joins_both() -> None:
    first, second = Home([(0, 10)], {"a"}), Home([(50, 60)], {"a"})
    assert records(settle([companion("a/x.log", (5, 70))], [first, second])) == [[0], [0]]


def test_a_log_between_two_captures_joins_the_nearer() -> None:
    first, second = Home([(0, 10)], {"a"}), Home([(50, 60)], {"a"})
    assert records(settle([companion("a/x.log", (40, 45))], [first, second])) == [[], [0]]


def test_a_manifest_decides() -> None:
    first = Home([(0, 10)], {"a"}, manifest="one")
    second = Home([(0, 10)], {"b"}, manifest="two")
    file = companion("a/x.log", (0, 10), manifest="two")
    assert records(settle([file], [first, second])) == [[], [0]]


def test_a_file_that_has_grown_takes_its_old_place() -> None:
    old = companion("a/x.log", (0, 10), digest="short", head="h")
    new = companion("a/x.log", (0, 30), digest="long", head="h")
    [home] = settle([old, new], [Home([(0, 10)], {"a"}, known={0: "short"})])
    assert home.records == [1]
    assert home.is_new


def test_the_same_file_again_is_nothing_new() -> None:
    old = companion("a/x.log", (0, 10), digest="d", head="h")
    [home] = settle([old, old], [Home([(0, 10)], {"a"}, known={0: "d"})])
    assert home.records == [0]
    assert not home.is_new
