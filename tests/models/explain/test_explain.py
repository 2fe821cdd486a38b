"""What is said of a finding, sentence by sentence, on every engine; all of it is proved."""

import json

import pytest

from teller.graph.finding import Finding
from teller.models.case import Case
from teller.models.explain.explain import Explained, held_to
from teller.models.explain.proof import connected
from tests.models.explain.conftest import told_of

PATH = [
    "In step 1 rank 1 spends 2.50 µs in gemm, 500 ns more than its like.",
    "cudaLaunchKernel launched it.",
    "After that rank 1 comes last to all_reduce, 500 ns behind the median rank.",
    "Rank 0 waits 500 ns for it there, in step 1.",
    "That iteration takes 4.50 µs.",
]
SAID = {
    "rule": {
        "verdict": ["gemm is slower on rank 1"],
        "culprit": ["To blame is gemm.", "It is on rank 1.", "It is on host node-1."],
        "mechanism": [
            "In step 1 gemm on rank 1 (node-1) takes 1.25× as long as its like.",
            "Others wait; NCCL_DEBUG=INFO would say for how long.",
        ],
        "path": PATH,
        "cost": ["It costs 500 ns, 5.88 % of the time it is set against."],
        "for": ["gemm on rank 1: 2.50 µs; on the ranks 0 it is shorter"],
        "against": ["the log line says slow 'gemm'\n"],
        "not_checked": ["why it is slower: 2 things may be"],
        "next": ["Look at node-1.", "Record step 1 again with gemm's shapes."],
    },
    "model": {
        "verdict": ["The model says: One operator of one rank is slow."],
        "culprit": ["To blame is gemm.", "It is on rank 1.", "It is on host node-1."],
        "mechanism": [
            "It takes 1 of the steps 1 to 1 for abnormal (90 %), and for this of all classes "
            "(80 %)."
        ],
        "path": PATH,
        "cost": ["It costs 500 ns, 11.1 % of the time of these steps."],
        "for": [
            "Step 1 of rank 1 takes 4.50 µs, 500 ns above its like.",
            "gemm on rank 1 takes 2.50 µs of its own, 500 ns above its like.",
        ],
        "not_checked": ["no rule says this"],
        "next": ["Compare it with a healthy run."],
    },
}  # fmt: skip


@pytest.mark.parametrize("by", SAID)
def test_a_finding_is_explained_and_all_of_it_is_proved(by: str, case: Case) -> None:
    _, told, _ = told_of(case, by)
    assert told.refused == ()
    said: dict[str, list[str]] = {}
    for sentence in told.sentences:
        said.setdefault(sentence.part, []).append(sentence.text)
    assert said == SAID[by]
    assert told.path_valid


@pytest.mark.parametrize("by", SAID)
def test_json_holds_it_whole_with_ids_as_strings(by: str, case: Case) -> None:
    finding, told, _ = told_of(case, by)
    whole = held_to(finding, told)
    said = json.loads(json.dumps(whole.to_json()))
    assert Finding.from_json(said) == whole
    wait = next(s for s in said["explanation"] if "waits" in s["text"])
    assert [n["text"] for n in wait["numbers"]] == ["500 ns"]
    assert wait["numbers"][0] | {"at": 0} == {
        "text": "500 ns", "at": 0, "value": 500, "unit": "ns", "form": "time",
        "where": {"kind": "IN_COLLECTIVE", "id": "30015", "column": "wait_ns", "to": "35201"},
    }  # fmt: skip
    assert [(n["text"], n["kind"]) for n in wait["names"]] == [("0", "Rank"), ("1", "Step")]
    assert [e["type"] for e in wait["edges"]] == ["IN_COLLECTIVE", "IN_STEP"]


def test_a_way_with_a_piece_missing_is_none(case: Case) -> None:
    _, told, _ = told_of(case, "rule")
    assert connected(told.path)
    assert not connected([s for s in told.path if "comes last" not in s.text])
    assert not connected([])


def test_what_is_not_proved_is_not_shown(case: Case) -> None:
    finding, told, _ = told_of(case, "rule")
    lost = [s for s in told.sentences if s.text.startswith(("In step 1 gemm", "gemm on", "Look"))]
    kept = tuple(s for s in told.sentences if s not in lost)
    shown = held_to(finding, Explained(kept, tuple((s, "") for s in lost)))
    assert shown.text == "Others wait; NCCL_DEBUG=INFO would say for how long."
    assert shown.next_step == "Record step 1 again with gemm's shapes."
    assert (shown.evidence, shown.against) == ((), finding.against)
