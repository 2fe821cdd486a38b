"""A new server's database made from files at once is the same as one that was loaded."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from teller.errors import BadUsage, SchemaMismatch
from teller.graph.neo4j import Neo4jStore
from teller.graph.neo4j_address import Address
from teller.graph.neo4j_import import Import

pytestmark = [pytest.mark.neo4j, pytest.mark.slow]

Tables = dict[str, pa.Table]
ToFiles = Callable[[Mapping[str, pa.Table]], dict[str, list[Path]]]
MakeTable = Callable[[str, Sequence[Mapping[str, object]]], pa.Table]
Home = tuple[Path, Callable[[], Address]]

WEIRD = 'it\'s "quoted", {x: $y};\n\t// not a comment\\ é λ 漢字 🜚'


def test_imported_runs_are_there_whole_and_exactly(
    neo4j_home: Home,
    tmp_path: Path,
    make_run: Callable[[int], Tables],
    make_table: MakeTable,
    to_files: ToFiles,
) -> None:
    home, start = neo4j_home
    values: list[dict[str, object]] = [
        {"id": 2**63 - 1, "name": WEIRD, "start_ns": 2**53 + 1, "stream": None},
        {"id": 2**53 + 1, "name": "", "start_ns": -(2**63), "stream": 0},
        {"id": 1, "name": None, "start_ns": None, "stream": 7},
    ]
    spans = make_table("Span", [{"run_id": 5} | value for value in values])
    made = Import(tmp_path)
    for run, tables in ((3, make_run(3)), (4, make_run(4)), (5, {"Span": spans})):
        made.add(run, to_files(tables), f"state {run}")
    made.run(home)
    with pytest.raises(BadUsage, match="has a database already"):
        made.run(home)
    with Neo4jStore(start()) as store:
        twice = {name: 2 * table.num_rows for name, table in make_run(3).items()}
        twice |= {"Operator": 1, "Span": twice["Span"] + 3}
        assert {name: n for name, n in store.counts().items() if n} == twice
        assert made.rows == twice
        assert store.states() == {3: "state 3", 4: "state 4", 5: "state 5"}
        found = store.query(
            "MATCH (s:Span) WHERE s.run_id = 5 RETURN s.id AS id, s.name AS name, "
            "s.start_ns AS start_ns, s.stream AS stream ORDER BY id DESC"
        )
        assert found.to_pylist() == values
        asked = (
            "MATCH (n:Span)-[x:IN_COLLECTIVE]->(c:Collective) RETURN n, x, c ORDER BY n.id, c.id"
        )
        imported = store.query(asked).to_pylist()
        store.drop(3)
        store.load(3, to_files(make_run(3)))
        assert len(imported) == 8
        assert store.query(asked).to_pylist() == imported


def test_what_is_no_home_and_what_does_not_fit_is_refused(
    neo4j_home: Home, tmp_path: Path, make_table: MakeTable, to_files: ToFiles
) -> None:
    with pytest.raises(BadUsage, match="no home of a Neo4j server"):
        Import(tmp_path).run(tmp_path)
    made = Import(tmp_path)
    twice = make_table("Span", [{"id": 5, "run_id": 4}, {"id": 5, "run_id": 4}])
    made.add(4, to_files({"Span": twice}), "")
    with pytest.raises(SchemaMismatch, match="the import tool refuses the data"):
        made.run(neo4j_home[0])
