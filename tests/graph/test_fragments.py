"""Tokens in the graph: fragments, what they contain, and which steps consist of them."""

from teller.graph import ids
from teller.graph.store import Store
from teller.models.tpe import fragments
from teller.models.tpe.encode import encode
from teller.models.tpe.training import train
from tests.graph.conftest import MakeTable
from tests.models.tpe.forests import forest_of

STEP = [
    (0, "step"),
    (1, "layer1"),
    (2, "gemm"),
    (3, "GEMM"),
    (1, "layer2"),
    (2, "gemm"),
    (3, "GEMM"),
]
KEY, RUN = "k", 5
SHAPES = """
MATCH (s:Step)-[c:CONSISTS_OF]->(f:Fragment)-[o:CONTAINS]->(op:Operator)
WHERE s.run_id = $run
RETURN s.step_index AS step, c.count AS times, o.position AS position, o.parent AS parent,
       o.depth AS depth, op.name AS operator
ORDER BY step, times, position
"""


def stored(store: Store, make_table: MakeTable, steps: list[list[tuple[int, str]]]) -> None:
    vocabulary = train(forest_of([STEP] * 2), largest=3)
    forest = forest_of(steps)
    rows = [
        {"id": ids.node_ids(KEY, "Step", *one)[0], "run_id": RUN, "step_index": n, "rank": 0}
        for n, one in enumerate(zip(*(forest.steps[c].to_numpy().reshape(-1, 1) for c in
                                      ("rank", "step_index")), strict=True))
    ]  # fmt: skip
    made = fragments.tables(KEY, encode(forest, vocabulary), vocabulary)
    store.append(RUN, {"Step": make_table("Step", rows)} | made)


def test_a_step_is_told_by_its_fragments(store: Store, make_table: MakeTable) -> None:
    stored(store, make_table, [STEP, [(0, "strange")]])
    assert store.query(SHAPES, {"run": RUN}).to_pylist() == [
        {"step": s, "times": n, "position": p, "parent": a, "depth": d, "operator": o}
        for s, n, p, a, d, o in [
            (0, 1, 0, -1, 0, "step"),
            (0, 2, 0, -1, 0, "layer#"),
            (0, 2, 1, 0, 1, "gemm"),
            (0, 2, 2, 1, 2, "GEMM"),
            (1, 1, 0, -1, 0, "strange"),
        ]
    ]


def test_equal_fragments_of_two_vocabularies_are_one_node(
    store: Store, make_table: MakeTable
) -> None:
    stored(store, make_table, [STEP])
    forest = forest_of([STEP])
    other = train(forest_of([[*STEP, (0, "aa"), (0, "ab")]] * 3), largest=3)
    before = store.counts()["Fragment"]
    store.append(RUN, fragments.tables(KEY, encode(forest, other), other), skip_lost=True)
    assert store.counts()["Fragment"] == before
