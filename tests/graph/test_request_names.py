"""Requests under the names that engines, clients and telemetry print."""

import pyarrow as pa
import pytest

from teller.graph.request_names import joined, matching

WHOLE = "0f8fad5bd9cb469fa16570867728950e"
DASHED = "0f8fad5b-d9cb-469f-a165-70867728950e"


def roots(*names: str) -> list[str]:
    found: list[str] = joined(pa.array(names)).to_pylist()
    return found


@pytest.mark.parametrize(
    "names",
    [
        (f"cmpl-{WHOLE}-0-1a2b3c4d", f"cmpl-{WHOLE}-0", f"cmpl-{WHOLE}", WHOLE, WHOLE[:8]),
        (f"chatcmpl-{DASHED}", DASHED, WHOLE, WHOLE[:8]),
        ("cmpl-41-0", "41"),
        ("chatcmpl-night-run-7", "night-run-7"),
        ("chatcmpl-run-deadbeef", "run-deadbeef"),
        (f"1_cmpl-{WHOLE}-0", WHOLE[:8]),
    ],
)
def test_the_forms_of_one_name_are_one_request(names: tuple[str, ...]) -> None:
    assert set(roots(*names)) == {names[0]}
    assert set(roots(*reversed(names))) == {names[0]}


def test_a_form_that_two_requests_have_stays_apart() -> None:
    names = (f"cmpl-{WHOLE}-0", f"cmpl-{WHOLE}-1", f"cmpl-{WHOLE}")
    assert roots(*names) == list(names)
    other = WHOLE[:8] + "0" * 24
    assert roots(WHOLE, other, WHOLE[:8]) == [WHOLE, other, WHOLE[:8]]


def test_names_that_only_look_alike_stay_apart() -> None:
    names = ["7", "17", "req-1", "req-1-0", "chatcmpl-a-1", "chatcmpl-a-2", "abc", ""]
    assert roots(*names) == names
    assert joined(pa.array([], pa.string())).to_pylist() == []


def test_a_word_means_a_name_then_a_form_then_a_beginning() -> None:
    names = pa.array([f"cmpl-{WHOLE}-0", "cmpl-7-0", "77"])
    assert matching(names, "7") == ["cmpl-7-0"]
    assert matching(names, WHOLE) == [f"cmpl-{WHOLE}-0"]
    assert matching(names, "0f8") == [f"cmpl-{WHOLE}-0"]
    assert matching(names, "cmpl") == [f"cmpl-{WHOLE}-0", "cmpl-7-0"]
    assert matching(names, "nobody") == []
