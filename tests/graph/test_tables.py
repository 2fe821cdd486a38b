"""Tables fit the schema, or the error says all that is wrong."""

import pyarrow as pa
import pytest

from teller.errors import SchemaMismatch, UnknownName
from teller.graph.schema import ABOUT, CHILD, HOST_NODE, SAMPLE, SPAN, STEP, TALKED_TO
from teller.graph.tables import TABLES, fit, fit_some, table_name, table_of


def test_absent_columns_are_null_and_the_label_is_filled_in() -> None:
    got = fit(pa.table({"name": ["a"], "run_id": pa.array([1], pa.int32()), "id": [5]}), HOST_NODE)
    assert got.schema == HOST_NODE.arrow
    assert got.to_pylist() == [{"id": 5, "run_id": 1, "kind": "Host", "name": "a"}]
    assert fit(got, HOST_NODE).equals(got)


def test_words_become_text() -> None:
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    got = fit(pa.table({"id": [1, 2, 3], "run_id": [1] * 3, "name": words}), SPAN)
    assert got["name"].to_pylist() == ["x", "y", "x"]
    assert got.schema == SPAN.arrow


def test_an_empty_table_fits() -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "run_id": pa.array([], pa.int64())})
    assert fit(empty, SPAN).num_rows == 0


def test_all_faults_are_named_at_once() -> None:
    bad = pa.table({"id": [1, None], "stream": ["seven", "8"], "colour": ["red", "red"]})
    with pytest.raises(SchemaMismatch) as said:
        fit(bad, SPAN)
    for word in ("Span", "colour", "missing: run_id", "id has 1 nulls", "stream is string"):
        assert word in str(said.value)


def test_numbers_that_would_change_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="dur_ns is double, not int64"):
        fit(pa.table({"id": [1], "run_id": [1], "dur_ns": [1.5]}), SPAN)


def test_key_columns_are_never_null() -> None:
    edges = pa.table({"src": [1], "dst": [2], "op": pa.nulls(1, pa.string())})
    with pytest.raises(SchemaMismatch, match=r"missing: group_name; op has 1 nulls"):
        fit(edges, TALKED_TO)


def test_some_columns_fit_by_id() -> None:
    got = fit_some(pa.table({"p_abnormal": pa.array([0.5], pa.float32()), "id": [1]}), STEP)
    assert got.schema.types == [pa.int64(), pa.float64()]
    with pytest.raises(SchemaMismatch, match="missing: id"):
        fit_some(pa.table({"p_abnormal": [0.5]}), STEP)


def test_tables_go_by_type_and_labels() -> None:
    assert table_name(SPAN) == "Span"
    assert table_name(CHILD) == "CHILD.Span.Span"
    assert table_name(ABOUT, SAMPLE, HOST_NODE) == "ABOUT.Sample.Host"
    assert table_of("ABOUT.Sample.Host").kind is ABOUT
    assert all(table.name == name for name, table in TABLES.items())
    with pytest.raises(SchemaMismatch, match="4 pairs"):
        table_name(ABOUT)
    with pytest.raises(UnknownName, match="Span to Host"):
        table_name(ABOUT, SPAN, HOST_NODE)
    with pytest.raises(UnknownName, match="did you mean CHILD"):
        table_of("CHILD.Span.Step")
