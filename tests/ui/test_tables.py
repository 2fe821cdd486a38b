"""Tables leave with every digit: ids are past what JSON readers keep."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from teller.ui import tables

BIG = (1 << 60) + 1


def _json(table: pa.Table) -> list[dict[str, object]]:
    file = io.StringIO()
    tables.write_json(table, file)
    rows: list[dict[str, object]] = json.loads(file.getvalue())
    return rows


def test_ids_in_json_are_strings_and_small_numbers_are_not() -> None:
    table = pa.table({"s.id": [BIG, 7], "run_id": [1, None], "rank": [3, 4], "sum": [BIG, 1]})
    assert _json(table) == [
        {"s.id": str(BIG), "run_id": "1", "rank": 3, "sum": str(BIG)},
        {"s.id": "7", "run_id": None, "rank": 4, "sum": "1"},
    ]


def test_ids_inside_nodes_are_strings_too() -> None:
    table = pa.table(
        {"n": [{"_LABEL": "Step", "id": 5, "rank": 1, "way": [BIG, 2]}], "text": ['a\nb,"c"']}
    )
    assert _json(table) == [{"n": {"id": "5", "rank": 1, "way": [str(BIG), 2]}, "text": 'a\nb,"c"'}]


def test_no_rows_are_an_empty_list_and_a_head_line() -> None:
    table = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    assert _json(table) == []
    file = io.StringIO()
    tables.write_csv(table, file)
    assert file.getvalue().strip() == '"id","text"'


def test_csv_gives_back_what_the_table_holds() -> None:
    table = pa.table({"id": [BIG, 2], "text": ['a "b",\nc', None], "list": [[1, BIG], None]})
    file = io.StringIO()
    tables.write_csv(table, file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert rows[0] == {"id": str(BIG), "text": 'a "b",\nc', "list": f'[1,"{BIG}"]'}
    assert rows[1]["id"] == "2"


def test_many_rows_are_all_there() -> None:
    table = pa.table({"id": range(120_001)})
    rows = _json(table)
    assert (len(rows), rows[0], rows[-1]) == (120_001, {"id": "0"}, {"id": "120000"})
    file = io.StringIO()
    tables.write_csv(table, file)
    assert file.getvalue().count("\n") == 120_002


def test_parquet_keeps_types(tmp_path: Path) -> None:
    table = pa.table({"id": [BIG], "text": ["x"]})
    tables.write_parquet(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
