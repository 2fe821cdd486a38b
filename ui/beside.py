"""A healthy step to hold a step against, and where the two differ."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]

FIGURES: Final = ("token_count", "batch_size")
CALM: Final = 0.03  # of its time: more excess than that is not healthy


def healthy(steps: pa.Table, index: int) -> Row | None:
    """Give the step of the rank to compare with: same phase and like load, and as it usually is.

    `steps` is the answer to `rank_steps`. None where no other step will do.
    """
    rows: list[Row] = steps.to_pylist()
    own = next((row for row in rows if row["step_index"] == index), None)
    if own is None:
        return None
    calm = [
        row for row in rows
        if row["step_index"] != index and row["phase"] == own["phase"] and row["dur_ns"]
        and (row["excess_ns"] or 0) <= CALM * row["dur_ns"]
    ]  # fmt: skip
    if not calm:
        return None
    usual = float(np.median([row["dur_ns"] for row in calm]))
    return min(
        calm, key=lambda row: (_apart(row, own), abs(row["dur_ns"] - usual), row["step_index"])
    )


def _apart(row: Row, own: Row) -> float:
    """Give how unlike the loads are: 0 for the same tokens and requests."""
    both = [(row[n], own[n]) for n in FIGURES if row[n] and own[n]]
    return round(float(sum(abs(np.log(a / b)) for a, b in both)), 2)


def operators(mine: pa.Table, other: pa.Table, limit: int = 40) -> list[Row]:
    """Give operators of two steps, of `window_spans`, by how much longer the first takes there.

    Device work counts its whole time, and so do calls: what they call is in them.
    """
    tables = [_by_operator(spans) for spans in (mine, other)]
    names = dict.fromkeys([*tables[0], *tables[1]])
    none = (0, 0, "")
    rows: list[Row] = [
        {
            "operator": name, "layer": (tables[0].get(name) or tables[1].get(name, none))[2],
            "here_ns": tables[0].get(name, none)[0], "there_ns": tables[1].get(name, none)[0],
            "here_calls": tables[0].get(name, none)[1], "there_calls": tables[1].get(name, none)[1],
        }
        for name in names
    ]  # fmt: skip
    rows.sort(key=lambda row: -abs(row["here_ns"] - row["there_ns"]))
    return rows[:limit]


def _by_operator(spans: pa.Table) -> dict[str, tuple[int, int, str]]:
    named = spans.set_column(
        spans.schema.get_field_index("operator"), "operator",
        pc.coalesce(spans["operator"], spans["name"]),
    )  # fmt: skip
    summed = named.group_by(["operator"], use_threads=False).aggregate(
        [("dur_ns", "sum"), ("dur_ns", "count"), ("layer", "first")]
    )
    return {
        row["operator"] or "": (
            row["dur_ns_sum"] or 0,
            row["dur_ns_count"],
            row["layer_first"] or "",
        )
        for row in summed.to_pylist()
    }
