"""The story of a request on a terminal, and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from teller.ui import phrase
from teller.ui.branches import Branch
from teller.ui.story import Row, Served, StepStory, Story
from teller.ui.text import plain_table, word

WORTH: Final = 0.05  # of its time: excess below that is not called too long
_RANKS: Final = 8  # named in a line
_NAME: Final = 64  # characters of a name that are shown
_TAIL: Final = 28
_IDS: Final = ("id", "span_id", "parent_id", "input_id")


def blocks(story: Story) -> Iterator[RenderableType]:
    """Give what is printed, top to bottom."""
    request = story.request
    status = word(request["status"] or "how it ended is not known", "bold")
    yield Text.assemble(word(f"Request {request['name']}: ", "bold"), status)
    yield word(f"in run {story.run}", "dim")
    yield Padding(_grid(story), (0, 0, 0, 2), expand=False)
    yield Text()
    yield from _iterations(story)
    yield from _inside(story)
    yield from _lines("Lines that speak of it", story.lines, story.line_count, story)
    head = "Other lines in the slowest iteration"
    yield from _lines(head, story.beside, story.beside_count, story)


def _grid(story: Story) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _answers(story):
        grid.add_row(label, text)
    return grid


def _answers(story: Story) -> Iterator[tuple[str, Text]]:
    asked = story.request
    start, end, queue = asked["start_ns"], asked["end_ns"], asked["queue_ns"]
    if start is not None:
        yield "came", word(_moment(story, start))
    yield "queue", word("not known" if queue is None else phrase.duration(queue))
    yield "first token", _against(story, "ttft", asked["ttft_ns"], " after it came")
    yield "between tokens", _against(story, "itl", asked["itl_p50_ns"])
    took = None if start is None or end is None else end - start
    yield "end", _against(story, "e2e", took, " after it came")
    counts = [f"{asked[c]:,} {word_}" for c, word_ in (
        ("prompt_tokens", "in"), ("output_tokens", "out")) if asked[c] is not None]  # fmt: skip
    if counts:
        yield "tokens", word(", ".join(counts))
    if asked["preemptions"]:
        yield "preempted", word(phrase.counted(asked["preemptions"], "time"))
    yield "told by", word(asked["told_by"] or "log lines alone")


def _against(story: Story, name: str, ns: int | None, after: str = "") -> Text:
    """Give a time beside its target."""
    said = "not known" if ns is None else f"{phrase.duration(ns)}{after}"
    if name not in story.targets:
        return word(said)
    aim = phrase.duration(story.targets[name])
    if name in story.missed:
        return word(f"{said}, over the target of {aim}", "bold red")
    return word(f"{said} (target {aim})")


def _moment(story: Story, ns: int) -> str:
    if story.t0_epoch_ns <= 0:
        return f"{phrase.duration(ns)} after the start of the recording"
    return phrase.clock(story.t0_epoch_ns + ns)


def _iterations(story: Story) -> Iterator[RenderableType]:
    if not story.iterations:
        yield word("No iteration is known to have served it.", "bold")
        return
    shown = len(story.iterations)
    yield word(f"Served by {phrase.counted(story.iteration_count, 'iteration')}", "bold")
    table = plain_table("Iteration", "took", "came last", "tied by", "own time by rank")
    for served in story.iterations:
        row = served.iteration
        last = "–" if row["last_rank"] is None else f"rank {row['last_rank']}"
        table.add_row(
            f"{row['step_index']:,}", phrase.duration(row["dur_ns"]), last,
            word(f"{row['tied_by']}, {phrase.share(row['confidence'])} sure"),
            word(_own_times(served)),
        )  # fmt: skip
    yield table
    if shown < story.iteration_count:
        yield word(f"the slowest {shown:,} are shown; --limit N shows more", "dim")


def _own_times(served: Served) -> str:
    said = [f"{s['rank']}: {phrase.duration(s['own_ns'] or 0)}" for s in served.steps]
    return phrase.some(said, _RANKS)


def _inside(story: Story) -> Iterator[RenderableType]:
    if not story.slowest:
        return
    row = story.iterations[0].iteration
    top = Tree(word(f"Iteration {row['step_index']:,}, {phrase.duration(row['dur_ns'])}", "bold"))
    for step in story.slowest:
        own = step.step["own_ns"] or 0
        head = f"rank {step.step['rank']}: {phrase.duration(step.step['dur_ns'])}"
        over = step.step["excess_ns"] or 0
        more = f", {phrase.duration(over)} too long" if over > 0 else ""
        branch = top.add(word(f"{head}, own time {phrase.duration(own)}{more}", "bold"))
        _grow(branch, step.branches)
        if step.left_out:
            branch.add(word(f"and {phrase.counted(step.left_out, 'span')} more", "dim"))
    yield Text()
    yield top
    if (rest := story.rank_count - len(story.slowest)) > 0:
        yield word(f"and {phrase.counted(rest, 'rank')} more", "dim")


def _grow(tree: Tree, branches: Iterable[Branch]) -> None:
    for branch in branches:
        _grow(tree.add(_span(branch)), branch.below)


def _span(branch: Branch) -> Text:
    span, met = branch.span, branch.collective
    line = Text()
    if branch.folded:
        line.append_text(word(f"… {phrase.counted(branch.folded, 'call')} … ", "dim"))
    line.append_text(word(_short(span["name"])))
    line.append_text(word(f"  {span['layer']}, {phrase.duration(span['dur_ns'])}", "dim"))
    if met is not None:
        return line.append_text(word(f"  {_met(met)}", "yellow"))
    if (span["excess_ns"] or 0) > WORTH * span["dur_ns"]:
        line.append_text(word(f"  {phrase.duration(span['excess_ns'])} too long", "bold red"))
    return line


def _short(name: str) -> str:
    """Cut a long name in its middle: kernels carry their template's arguments."""
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - _TAIL - 1]}…{name[-_TAIL:]}"


def _met(row: Row) -> str:
    last = "" if row["last_rank"] is None else f"; rank {row['last_rank']} came last"
    op, wait = row["op"] or "collective", row["wait_ns"] or 0
    of = phrase.counted(row["ranks_seen"] or 0, "rank")
    waited = f", waited {phrase.duration(wait)}" if wait else ""
    return f"{op} of {of}{waited}{last if row['skew_ns'] else ''}"


def _lines(head: str, rows: Sequence[Row], count: int, story: Story) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text()
    yield word(f"{head}: {count:,}", "bold")
    for row in rows:
        when = "no time" if row["time_ns"] is None else _moment(story, row["time_ns"])
        who = row["process"] or ("" if row["rank"] is None else f"rank {row['rank']}")
        step = "" if row["step_index"] is None else f"iteration {row['step_index']:,}"
        about = ", ".join(x for x in (when, who, step, row["level"] or "") if x)
        yield Padding(Text.assemble(word(f"{about}: ", "dim"), word(row["text"])), (0, 0, 0, 2))
    if count > len(rows):
        yield word(f"  and {count - len(rows):,} more", "dim")


def to_json(story: Story) -> dict[str, Any]:
    """Give the story as JSON holds it: ids are strings."""
    return {
        "schema": "teller.request/1",
        "run": story.run,
        "t0_epoch_ns": str(story.t0_epoch_ns),
        "request": _plain(story.request),
        "targets": dict(story.targets),
        "missed": list(story.missed),
        "iterations": {
            "count": story.iteration_count,
            "slowest": [_plain(s.iteration) | {"steps": [_plain(r) for r in s.steps]}
                        for s in story.iterations],
        },
        "slowest": {"rank_count": story.rank_count, "ranks": [_rank(s) for s in story.slowest]},
        "lines": {"count": story.line_count, "first": [_plain(r) for r in story.lines]},
        "lines_beside": {"count": story.beside_count, "first": [_plain(r) for r in story.beside]},
    }  # fmt: skip


def _rank(step: StepStory) -> dict[str, Any]:
    return {
        "step": _plain(step.step),
        "collectives": [_plain(row) for row in step.collectives],
        "tree": [_branch(branch) for branch in step.branches],
        "left_out": step.left_out,
    }


def _branch(branch: Branch) -> dict[str, Any]:
    met = branch.collective
    return _plain(branch.span) | {
        "folded": branch.folded,
        "collective": None if met is None else _plain(met),
        "below": [_branch(below) for below in branch.below],
    }


def _plain(row: Row) -> dict[str, Any]:
    return {k: str(v) if k in _IDS and v is not None else v for k, v in row.items()}
