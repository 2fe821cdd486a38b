"""A tiny run with a rule and a model that blame rank 1's `gemm` in step 1, on every engine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from teller.graph import ids
from teller.graph.finding import Cost, Culprit, Evidence, Finding
from teller.graph.store import Store
from teller.models.apply import apply
from teller.models.case import Case
from teller.models.explain import Again, Explained, Proof, explained
from teller.models.rule import Rule, parse
from tests.graph import conftest as graphs

RUN = 3
RULE = parse("late_gemm", '''
id = "late_gemm"
class = "slow_operator"
title = "{operator} is slower on rank {rank}"
claim = "a call takes longer than its like"
text = """In step {first_step} {operator} on rank {rank} ({host}) takes {factor:times} as long
as its like. Others wait; NCCL_DEBUG=INFO would say for how long."""
next_step = "Look at {host}. Record step {first_step} again with {operator}'s shapes."
confidence = 0.9
culprit = ["rank", "host", "operator"]
not_checked = ["why it is slower: 2 things may be"]
find = """
MATCH (s:Span) WHERE s.run_id = $run AND s.stream IS NOT NULL AND s.excess_ns > 0
RETURN s.rank AS rank, s.operator AS operator, s.excess_ns AS excess_ns,
       1.0 * s.own_ns / 2000 AS factor,
       s.step_index AS first_step, s.step_index AS last_step, s.start_ns AS start_ns
"""

[[evidence]]
role = "cause"
kind = "Span"
text = "{operator} on rank {rank}: {own_ns:time}; on the ranks {peers} it is shorter"
cypher = """
MATCH (s:Span) WHERE s.run_id = $run AND s.operator = $operator AND s.rank <> $rank
WITH collect(DISTINCT s.rank) AS peers
MATCH (s:Span) WHERE s.run_id = $run AND s.rank = $rank AND s.excess_ns > 0
RETURN s.id AS id, s.input_id AS input_id, s.own_ns AS own_ns, peers
"""

[[against]]
text = "the log line says {said}"
cypher = """
MATCH (l:LogLine) WHERE l.run_id = $run AND l.rank = $rank RETURN l.text AS said
"""
''')  # fmt: skip
MODEL = Finding(
    id=77, run=RUN, klass="slow_operator", case_class="slow_operator_one_rank",
    title="One operator of one rank is slow", severity="low", confidence=0.7,
    culprit=Culprit("operator", ranks=(1,), hosts=("node-1",), operators=("gemm",)),
    text="", next_step="Compare it with a healthy run.", ruleset="model", first_step=1,
    last_step=1, step_count=1, start_ns=10_000, end_ns=14_500, cost=Cost(500, 0.111, 1e-6),
    numbers={"model_chance": 0.9, "class_chance": 0.8},
    evidence=(Evidence("effect", "Step", 35011, "rank1.json", "step 1"),
              Evidence("cause", "Span", 30113, "rank1.json:3", "gemm")),
    not_checked=("no rule says this",), voices={"model": 0.72},
)  # fmt: skip

Tell = Callable[[str], tuple[Finding, Explained, Proof]]


@pytest.fixture(params=graphs.ENGINES)
def store(request: pytest.FixtureRequest) -> Store:
    """Give an empty store, of each engine in turn."""
    opened: Store = request.getfixturevalue(request.param)
    return opened


embedded_store = graphs.embedded_store


@pytest.fixture
def case(store: Store, tmp_path: Path) -> Case:
    """Give the tiny run, whose operators have the ids that an ingest gives them."""
    return loaded(store)


def loaded(store: Store) -> Case:
    """Load the tiny run."""
    tables = graphs.tiny_run(RUN)
    names: Sequence[Mapping[str, object]] = [
        {"id": ids.node_id("", "Operator", name), "run_id": 0, "name": name}
        for name in ("gemm", "linear", "all_reduce")
    ]
    store.append(RUN, tables | {"Operator": graphs._table("Operator", names)})
    return Case(store, RUN)


def told_of(case: Case, by: str) -> tuple[Finding, Explained, Proof]:
    """Give the finding of the rule or of the model, what is said of it, and who proves it."""
    if by == "model":
        return MODEL, explained(case, MODEL, None), Proof(Again(case), MODEL)
    [finding], [ground] = (lambda a: (a.findings, a.grounds))(apply(RULE, case))
    return finding, explained(case, finding, ground), Proof(Again(case), finding, RULE)


def rule() -> Rule:
    """Give the rule."""
    return RULE
