"""What every engine promises; see `teller.graph.store.Store`."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from teller.errors import BadUsage, QueryRefused, SchemaMismatch, TellerError, UnknownName
from teller.graph.store import Store

Tables = dict[str, pa.Table]
MakeRun = Callable[[int], Tables]
ToFiles = Callable[[Mapping[str, pa.Table]], dict[str, list[Path]]]
MakeTable = Callable[[str, Sequence[Mapping[str, object]]], pa.Table]

WEIRD = 'it\'s "quoted", {x: $y};\n\t// not a comment\\ é λ 漢字 🜚'


def filled(store: Store) -> dict[str, int]:
    return {name: count for name, count in store.counts().items() if count}


def sizes(tables: Tables) -> dict[str, int]:
    return {name: table.num_rows for name, table in tables.items()}


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.runs() == []
    assert filled(store) == {}


def test_a_loaded_run_is_there_whole(store: Store, make_run: MakeRun, to_files: ToFiles) -> None:
    store.load(3, to_files(make_run(3)))
    assert store.runs() == [3]
    assert filled(store) == sizes(make_run(3))


def test_an_appended_run_is_there_whole(store: Store, make_run: MakeRun) -> None:
    store.append(3, make_run(3))
    assert store.runs() == [3]
    assert filled(store) == sizes(make_run(3))


def test_loading_and_appending_give_the_same_graph(
    store: Store, make_run: MakeRun, to_files: ToFiles
) -> None:
    question = (
        "MATCH (n:Span)-[x:IN_COLLECTIVE]->(c:Collective) RETURN n, x.wait_ns, c ORDER BY n.id"
    )
    strip = ("_ID", "_SRC", "_DST")

    def told() -> list[object]:
        rows = store.query(question).to_pylist()
        return [[{k: v for k, v in cell.items() if k not in strip} if isinstance(cell, dict)
                 else cell for cell in row.values()] for row in rows]  # fmt: skip

    store.load(3, to_files(make_run(3)))
    loaded = told()
    store.drop(3)
    store.append(3, make_run(3))
    assert len(loaded) == 4
    assert told() == loaded


def test_loading_twice_is_refused_and_changes_nothing(
    store: Store, make_run: MakeRun, to_files: ToFiles
) -> None:
    files = to_files(make_run(3))
    store.load(3, files)
    with pytest.raises(BadUsage, match="run 3 is in the graph already"):
        store.load(3, files)
    assert filled(store) == sizes(make_run(3))


def test_appending_twice_changes_nothing(
    store: Store, make_run: MakeRun, to_files: ToFiles
) -> None:
    store.load(3, to_files(make_run(3)))
    store.append(3, make_run(3))
    store.append(3, make_run(3))
    assert filled(store) == sizes(make_run(3))


def test_an_append_adds_only_what_is_new(
    store: Store, make_run: MakeRun, make_table: MakeTable
) -> None:
    store.append(3, make_run(3))
    hosts: list[dict[str, object]] = [
        {"id": 35500, "run_id": 3, "name": "renamed"},
        {"id": 35599, "run_id": 3},
    ]
    store.append(3, {"Host": make_table("Host", hosts + hosts[1:])})
    found = store.query("MATCH (h:Host) RETURN h.id AS id, h.name AS name ORDER BY id").to_pylist()
    assert [(row["id"], row["name"]) for row in found] == [
        (35500, "node-0"), (35501, "node-1"), (35599, None),
    ]  # fmt: skip


def test_a_dropped_run_is_gone_and_can_come_again(
    store: Store, make_run: MakeRun, to_files: ToFiles
) -> None:
    files = to_files(make_run(3))
    store.load(3, files)
    store.drop(3)
    assert store.runs() == []
    assert filled(store) == {"Operator": 1}
    store.drop(3)
    store.load(3, files)
    assert filled(store) == sizes(make_run(3))
    found = store.query("MATCH (s:Span {id: $id}) RETURN s.name AS name", {"id": 30113})
    assert found["name"].to_pylist() == ["gemm"]


def test_two_runs_lie_side_by_side(store: Store, make_run: MakeRun, to_files: ToFiles) -> None:
    store.load(3, to_files(make_run(3)))
    store.load(4, to_files(make_run(4)))
    assert store.runs() == [3, 4]
    twice = {name: 2 * rows for name, rows in sizes(make_run(3)).items()}
    assert filled(store) == twice | {"Operator": 1}
    store.drop(3)
    assert store.runs() == [4]
    assert filled(store) == sizes(make_run(4))


def test_a_collision_with_another_run_is_named_and_does_it_no_harm(
    store: Store, make_run: MakeRun, to_files: ToFiles, make_table: MakeTable
) -> None:
    store.load(3, to_files(make_run(3)))
    spans = make_table("Span", [{"id": 30113, "run_id": 4}, {"id": 40000, "run_id": 4}])
    with pytest.raises(SchemaMismatch, match=r"Span: 1 of 2 ids are taken: 30113 \(in run 3\)"):
        store.load(4, to_files({"Span": spans}))
    store.drop(4)
    assert filled(store) == sizes(make_run(3))
    store.load(4, to_files(make_run(4)))
    assert store.runs() == [3, 4]


def test_a_collision_inside_a_run_is_named(
    store: Store, to_files: ToFiles, make_table: MakeTable
) -> None:
    spans = make_table("Span", [{"id": 5, "run_id": 4}, {"id": 6, "run_id": 4}] * 2)
    with pytest.raises(SchemaMismatch, match=r"ids are taken: 5 \(twice in this run\), 6"):
        store.load(4, to_files({"Span": spans}))
    store.drop(4)
    assert filled(store) == {}


def test_integers_nulls_and_text_come_back_exactly(
    store: Store, to_files: ToFiles, make_table: MakeTable
) -> None:
    values: list[dict[str, object]] = [
        {"id": 2**63 - 1, "name": WEIRD, "start_ns": 2**53 + 1, "stream": None},
        {"id": 2**53 + 1, "name": "", "start_ns": -(2**63), "stream": 0},
        {"id": 1, "name": None, "start_ns": None, "stream": 7},
    ]
    rows = [{"run_id": 1} | value for value in values]
    store.load(1, to_files({"Span": make_table("Span", rows[:2])}))
    store.append(1, {"Span": make_table("Span", rows[2:])})
    found = store.query(
        "MATCH (s:Span) RETURN s.id AS id, s.name AS name, s.start_ns AS start_ns, "
        "s.stream AS stream ORDER BY id DESC"
    )
    assert found.to_pylist() == values
    [row] = store.query("MATCH (s:Span) WHERE s.name = $n RETURN s.id AS id", {"n": WEIRD})[0]
    assert row.as_py() == 2**63 - 1


def test_sums_are_whole_numbers(store: Store, to_files: ToFiles, make_table: MakeTable) -> None:
    rows = [{"id": i, "run_id": 1, "dur_ns": 2**53 + i} for i in range(3)]
    store.load(1, to_files({"Span": make_table("Span", rows)}))
    found = store.query("MATCH (s:Span) RETURN sum(s.dur_ns) AS total, collect(s.id) AS ids")
    assert found.schema.field("total").type == pa.int64()
    assert found["total"].to_pylist() == [3 * 2**53 + 3]


def test_a_tree_88_deep_is_walked(store: Store, to_files: ToFiles, make_table: MakeTable) -> None:
    spans = [{"id": i, "run_id": 1, "depth": i} for i in range(89)]
    nested = [{"src": i, "dst": i + 1} for i in range(88)]
    tables = {"Span": make_table("Span", spans),
              "CHILD.Span.Span": make_table("CHILD.Span.Span", nested)}  # fmt: skip
    store.load(1, to_files(tables))
    walk = "MATCH (:Span {id: $id})-[:CHILD|LAUNCHED*0..88]->(s:Span) RETURN max(s.depth) AS depth"
    assert store.query(walk, {"id": 0})["depth"].to_pylist() == [88]


def test_relations_are_told_apart_by_their_key(store: Store, make_table: MakeTable) -> None:
    ranks = [{"id": i, "run_id": 1, "rank": i} for i in (0, 1)]
    talk: list[dict[str, object]] = [{"src": 0, "dst": 1, "group_name": g, "op": op, "count": 1}
            for g in ("tp", "") for op in ("all_reduce", "send")]  # fmt: skip
    more: list[dict[str, object]] = [
        {"src": 0, "dst": 1, "group_name": "tp", "op": "send", "count": 9}
    ]
    name = "TALKED_TO.Rank.Rank"
    store.append(1, {"Rank": make_table("Rank", ranks), name: make_table(name, talk)})
    store.append(1, {name: make_table(name, talk + more)})
    found = store.query(
        "MATCH (:Rank)-[t:TALKED_TO]->(:Rank) RETURN t.group_name AS g, t.op AS op, t.count AS n "
        "ORDER BY g, op"
    )
    rows = [tuple(row.values()) for row in found.to_pylist()]
    assert [row[:2] for row in rows] == [
        ("", "all_reduce"), ("", "send"), ("tp", "all_reduce"), ("tp", "send"),
    ]  # fmt: skip


def test_an_update_sets_what_is_given_and_nothing_else(store: Store, make_run: MakeRun) -> None:
    store.append(3, make_run(3))
    scores = pa.table({"id": [35011, 99], "p_abnormal": [0.75, 0.5]})
    store.update("Step", scores)
    found = store.query(
        "MATCH (s:Step) WHERE s.p_abnormal IS NOT NULL "
        "RETURN s.id AS id, s.p_abnormal AS p, s.dur_ns AS dur_ns"
    )
    assert found.to_pylist() == [{"id": 35011, "p": 0.75, "dur_ns": 4_500}]


def test_a_relation_to_nowhere_is_named(
    store: Store, to_files: ToFiles, make_table: MakeTable
) -> None:
    spans = make_table("Span", [{"id": 1, "run_id": 1}])
    lost = make_table("CHILD.Span.Span", [{"src": 1, "dst": 2}])
    tables = {"Span": spans, "CHILD.Span.Span": lost}
    with pytest.raises(SchemaMismatch, match="id 2"):
        store.load(1, to_files(tables))
    with pytest.raises(BadUsage, match="drop it"):
        store.load(1, to_files(tables))
    store.drop(1)
    with pytest.raises(SchemaMismatch, match="no Span has the id 2"):
        store.append(1, tables)
    assert filled(store) == {}


def test_a_relation_to_nowhere_can_be_passed_over(store: Store, make_table: MakeTable) -> None:
    spans = make_table("Span", [{"id": i, "run_id": 1} for i in (1, 2)])
    nested = make_table("CHILD.Span.Span", [{"src": 1, "dst": 2}, {"src": 1, "dst": 3}])
    store.append(1, {"Span": spans, "CHILD.Span.Span": nested}, skip_lost=True)
    assert filled(store) == {"Span": 2, "CHILD.Span.Span": 1}


def test_removed_nodes_are_gone_with_their_relations(store: Store, make_run: MakeRun) -> None:
    store.append(3, make_run(3))
    store.remove("Finding", [35800, 99])
    store.remove("Finding", [])
    gone = {"Finding", "IN_RUN.Finding.Run", "BLAMES.Finding.Rank"}
    expected = {n: c for n, c in sizes(make_run(3)).items() if n not in gone and "SHOWN" not in n}
    assert filled(store) == expected


def test_rows_of_another_run_are_refused(
    store: Store, make_run: MakeRun, to_files: ToFiles
) -> None:
    with pytest.raises(SchemaMismatch, match="rows of run 3"):
        store.load(4, to_files(make_run(3)))
    with pytest.raises(SchemaMismatch, match="rows of run 3"):
        store.append(4, make_run(3))


def test_what_does_not_exist_is_named(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"no table 'Spam'; did you mean Span"):
        store.append(1, {"Spam": pa.table({})})
    with pytest.raises(UnknownName, match=r"label or relation 'Spam'"):
        store.query("MATCH (n:Spam) RETURN n.id")
    with pytest.raises(UnknownName, match=r"property 'durr_ns'; did you mean dur_ns"):
        store.query("MATCH (n:Span) RETURN n.durr_ns")
    with pytest.raises(UnknownName, match=r"property 'duration'; did you mean dur_ns"):
        store.query("MATCH (n:Span) RETURN n.duration")


def test_what_only_looks_like_another_clause_is_asked(store: Store) -> None:
    asked = "/* load from */ MATCH (load:Span) WHERE load.name = 'CALL x()' RETURN load.id AS call"
    assert store.query(asked)["call"].to_pylist() == []


@pytest.mark.parametrize(
    ("text", "params", "error"),
    [
        ("MATCH (n:Span) RETRN n", {}, QueryRefused),
        ("MATCH (n:Span) RETURN n.id; MATCH (n:Span) DETACH DELETE n", {}, QueryRefused),
        ("CREATE (:Span {id: 1, run_id: 1, kind: 'Span'})", {}, QueryRefused),
        ("MATCH (n:Span) SET n.name = 'x'", {}, QueryRefused),
        ("COPY (MATCH (n:Host) RETURN n.id) TO 'taken.csv'", {}, QueryRefused),
        ("PROFILE COPY (MATCH (n:Host) RETURN n.id) TO 'taken.csv'", {}, QueryRefused),
        ("LOAD FROM 'README.md' (file_format='csv') RETURN *", {}, QueryRefused),
        ("WITH 1 AS one LOAD/**/FROM 'README.md' RETURN *", {}, QueryRefused),
        ("CALL timeout=0", {}, QueryRefused),
        ("MATCH (n:Host) CALL clear_warnings() RETURN *", {}, QueryRefused),
        ("MATCH (n:Span) WHERE n.id = $id RETURN n.id", {}, BadUsage),
        ("MATCH (n:Span) WHERE n.name = '$id' RETURN n.id", {"id": 1}, BadUsage),
    ],
)
def test_a_query_that_cannot_be_is_refused(
    store: Store, text: str, params: dict[str, object], error: type[TellerError]
) -> None:
    with pytest.raises(error):
        store.query(text, params)
    assert store.query("MATCH (n:Span) RETURN count(*) AS n;")["n"].to_pylist() == [0]


def test_threads_share_a_store(store: Store, make_run: MakeRun) -> None:
    store.append(3, make_run(3))
    told: list[object] = []

    def ask() -> None:
        for _ in range(5):
            told.append(store.query("MATCH (s:Span) RETURN count(*) AS n")["n"][0].as_py())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [24] * 15


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(BadUsage, match="closed"):
        store.query("MATCH (n:Span) RETURN count(*)")
    with pytest.raises(BadUsage, match="closed"):
        store.drop(1)
