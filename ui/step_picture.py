"""The timeline of a step on several ranks, as fine as the zoom asks for."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from teller.ui import canvas, detail, lanes, phrase, shell, step_parts, verbatim
from teller.ui.scene import Scene, hosts

RANKS: Final = 4  # that are drawn unless more are asked for
MOST_RANKS: Final = 16
DEPTH: Final = 8
HOW: Final = (
    "Click it, then W and S zoom, A and D move, arrows go from span to span. The shaded stretch "
    "is the step."
)


def timeline(seen: Scene) -> int | None:
    """Show the ranks around a step on one axis, and give the span that is chosen, if any."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ranks = st.multiselect(
            "Ranks", sorted(row["rank"] for row in seen.others), default=first_ranks(seen),
            max_selections=MOST_RANKS, key=f"ranks-{seen.step['id']}",
        )  # fmt: skip
        depth = st.slider("Levels of a thread", 1, 24, DEPTH, key="depth", width=220)
        dims = st.toggle("Only what is odd stands out", value=True, key="dims")
    _picture(seen, tuple(ranks or [seen.rank]), depth, dims)
    return shell.number("span")


def first_ranks(seen: Scene) -> list[int]:
    """Give the ranks to draw first: the asked one, the last to come, the blamed, the slowest."""
    there = {row["rank"] for row in seen.others}
    blamed = seen.finding.culprit.ranks if seen.finding else ()
    slowest = sorted(seen.others, key=lambda row: -(row["excess_ns"] or 0))
    wanted = [seen.rank, seen.around.get("last_rank"), *blamed, *(row["rank"] for row in slowest)]
    return list(dict.fromkeys(rank for rank in wanted if rank in there))[:RANKS]


@st.fragment
def _picture(seen: Scene, ranks: Sequence[int], depth: int, dims: bool) -> None:
    key = f"timeline-{seen.step['id']}"
    view = (st.session_state.get(key) or {}).get("view")
    got = _spans(seen, ranks, view)
    picture = lanes.draw(got.spans, _frame(seen, ranks, depth), _marks(seen, dims),
                         _lines(seen, ranks))  # fmt: skip
    verbatim.key(
        [*((lanes.COLORS[kind], kind) for kind in picture.kinds), (lanes.HOT, "framed: evidence")]
    )
    said = canvas.timeline(picture, key)
    more = f"; {got.left_out:,} shorter ones appear when you zoom in" if got.left_out else ""
    st.caption(f"{phrase.counted(picture.span_count, 'span')}{more}. {HOW}")
    selected = said.selected if said else None
    if selected and int(selected) != shell.number("span"):
        st.query_params["span"] = selected
        st.rerun()


def _spans(seen: Scene, ranks: Sequence[int], view: list[float] | None) -> detail.Seen:
    """Give what shows in the view, in µs since the start of the scene, and a half to each side."""
    steps = [row["id"] for row in seen.others if row["rank"] in ranks]
    if view is None:
        return detail.seen(seen.place, steps, seen.start_ns, seen.end_ns)
    first, last = (seen.start_ns + int(end * 1e3) for end in view)
    margin = (last - first) // 2
    return detail.seen(seen.place, steps, first - margin, last + margin)


def _frame(seen: Scene, ranks: Sequence[int], depth: int) -> lanes.Frame:
    named = hosts(seen.place, seen.run)
    said = {
        rank: f"rank {rank} ({named[rank]})" if named.get(rank) else f"rank {rank}"
        for rank in ranks
    }
    zone = (seen.step["start_ns"], seen.step["end_ns"])
    return lanes.Frame(
        f"{seen.step['id']}-{list(ranks)}-{depth}", seen.start_ns, seen.end_ns, said, depth,
        zones=[zone],
    )  # fmt: skip


def _marks(seen: Scene, dims: bool) -> lanes.Marks:
    evidence = [one.id for one in seen.finding.evidence] if seen.finding else []
    odd = step_parts.slice_of(seen).spans["id"].to_pylist() if dims else []
    return lanes.Marks(odd, evidence, shell.number("span"))


def _lines(seen: Scene, ranks: Sequence[int]) -> pa.Table | None:
    lines = seen.lines()
    if lines is None or not lines.num_rows:
        return None
    here = pc.is_in(lines["rank"], pa.array(ranks, pa.int64()))
    return lines.filter(pc.and_(pc.is_valid(lines["time_ns"]), here))
