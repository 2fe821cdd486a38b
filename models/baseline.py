"""A run beside its healthy run: which of a rule's rows take longer now, at like load."""

from typing import Any

from teller.models.case import Case, Row
from teller.models.rule import Compare, Rule

Key = tuple[Any, ...]


def compared(rule: Rule, case: Case) -> list[Row]:
    """Give what is slower than in the baseline, and most of all that is."""
    if rule.compare is None or case.baseline is None:
        return []
    asked = rule.compare
    columns = (*asked.keys, *asked.load)
    usual = {
        tuple(r[c] for c in columns): float(r["each_ns"])
        for r in Case(case.store, case.baseline).rows(asked.cypher, rule.thresholds)
        if r["each_ns"]
    }
    found: dict[Key, list[tuple[Row, float]]] = {}
    for row in case.rows(asked.cypher, rule.thresholds):
        before = usual.get(tuple(row[c] for c in columns))
        if before is not None:
            found.setdefault(tuple(row[k] for k in asked.keys), []).append((row, before))
    ranks = max(len(case.ranks), 1)
    time = sum(i["dur_ns"] for i in case.iterations.values()) * ranks
    return _standing([_summed(rows, ranks) for rows in found.values()], asked, time)


def _summed(rows: list[tuple[Row, float]], ranks: int) -> Row:
    """Make one row of those of all loads: each counts by its calls."""
    calls = sum(row["calls"] for row, _ in rows)
    each = sum(row["each_ns"] * row["calls"] for row, _ in rows) / calls
    usual = sum(before * row["calls"] for row, before in rows) / calls
    over = (each - usual) * calls
    most = max((row for row, _ in rows), key=lambda row: row["calls"])
    return most | {
        "calls": calls, "each_ns": each, "usual_ns": usual, "factor": each / usual,
        "over_ns": over, "excess_ns": over / ranks,
    }  # fmt: skip


def _standing(rows: list[Row], asked: Compare, time: float) -> list[Row]:
    whole = sum(max(r["over_ns"], 0) for r in rows)
    return [
        r | {"over_share": r["over_ns"] / whole}
        for r in rows
        if r["factor"] >= asked.min_factor
        and r["over_ns"] >= asked.min_share * time
        and r["over_ns"] >= asked.dominance * whole
    ]
