"""A diagnosis as one HTML page that needs nothing beside it: no network, no script."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from teller import __version__
from teller.graph.finding import Diagnosis, Finding, InputSummary, RunSummary
from teller.ui import phrase
from teller.ui.sights import RunSight

_PATHS: Final = 8  # slowest paths that are listed beside the communication graph
_EVIDENCE: Final = 60


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with its head and the sentence that says how to read it."""

    head: str
    svg: Markup
    reads: str
    rows: tuple[tuple[str, ...], ...] = ()  # the same in figures, a head line first


@dataclass(frozen=True, slots=True)
class Numbered:
    """A finding with its number on the page and its run."""

    number: int
    finding: Finding
    run: RunSummary | None


def render(diagnosis: Diagnosis, sights: Mapping[int, RunSight]) -> str:
    """Give the page; `sights` holds by run id what its pictures are drawn from."""
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page.filters.update(
        visible=phrase.visible, duration=phrase.duration, share=phrase.share, steps=phrase.steps,
        cost=phrase.cost, who=phrase.who, parts=phrase.parts, ranges=phrase.ranges,
        extent=phrase.extent, measure=phrase.measure, voices=phrase.voices, clock=phrase.clock,
        counted=phrase.counted, way=phrase.way,
    )  # fmt: skip
    source = resources.files("teller.ui").joinpath("report.html").read_text(encoding="utf-8")
    found = [
        Numbered(number, finding, phrase.run_of(diagnosis, finding))
        for number, finding in enumerate(diagnosis.findings, 1)
    ]
    return page.from_string(source).render(
        diagnosis=diagnosis, verdict=phrase.VERDICTS[diagnosis.verdict], found=found,
        pictures={run.id: pictures(run, sights[run.id], found) for run in diagnosis.runs
                  if run.id in sights},
        kinds=_by_kind(diagnosis.inputs), when=phrase.when, version=__version__,
        most_evidence=_EVIDENCE,
    )  # fmt: skip


def pictures(run: RunSummary, sight: RunSight, found: list[Numbered]) -> list[Picture]:
    """Give the pictures of a run that its tables allow."""
    here = [(item.number, item.finding) for item in found if item.finding.run == run.id]
    drawn = []
    if sight.heat.num_rows:
        from teller.ui.pictures import heat

        drawn.append(Picture(
            "Where and when", Markup(heat.draw(sight.heat, here, sight.hosts, f"heat{run.id}")),
            "Each row is a rank, each column a step; the redder, the more time was lost there. "
            "Boxes mark the findings by number.",
        ))  # fmt: skip
    if sight.step is not None and sight.step.spans.num_rows:
        drawn.append(_step_picture(run, sight))
    if sight.edges.num_rows:
        drawn.append(_network_picture(run, sight, [finding for _, finding in here]))
    return drawn


def _step_picture(run: RunSummary, sight: RunSight) -> Picture:
    from teller.ui.pictures import tree

    assert sight.step is not None
    seen = tree.boxes(sight.step.spans)
    short = f" {phrase.counted(seen.left_out, 'span is', 'spans are')} too short to be seen."
    return Picture(
        f"Inside step {sight.step.step_index:,} of rank {sight.step.rank}",
        Markup(tree.draw(sight.step.spans, f"tree{run.id}")),
        "Time runs to the right, calls go down; threads above, device streams below. "
        "Point at a box for its name and time." + (short if seen.left_out else ""),
    )


def _network_picture(run: RunSummary, sight: RunSight, findings: list[Finding]) -> Picture:
    from teller.ui.pictures import network

    blamed = sorted({rank for finding in findings for rank in finding.culprit.ranks})
    return Picture(
        "Who talks to whom",
        Markup(network.draw(sight.edges, sight.hosts, blamed, f"net{run.id}")),
        "The wider a path, the more data it carried; the redder, the longer a transfer took by "
        "itself. Filled: blamed by a finding.",
        _slowest_paths(sight.edges),
    )  # fmt: skip


def _slowest_paths(edges: pa.Table) -> tuple[tuple[str, ...], ...]:
    order = pc.sort_indices(edges, [("pure_p50_ns", "descending"), ("size_bytes", "descending")])
    rows = edges.take(order.slice(0, _PATHS)).to_pylist()
    head = ("from", "to", "group", "operation", "times", "data", "median", "99th", "carried by")
    return (head, *(
        (f"rank {row['src_rank']}", f"rank {row['dst_rank']}", phrase.visible(row["group_name"]),
         phrase.visible(row["op"]), f"{row['count'] or 0:,}", phrase.size(row["size_bytes"] or 0),
         phrase.duration(row["pure_p50_ns"] or 0), phrase.duration(row["pure_p99_ns"] or 0),
         phrase.visible(row["transport"] or "unknown"))
        for row in rows
    ))  # fmt: skip


def _by_kind(inputs: tuple[InputSummary, ...]) -> list[tuple[str, int, str, int]]:
    """Give for each kind its files, ranks and events."""
    kinds = sorted({item.kind for item in inputs})
    return [
        (kind, len(same), phrase.ranges(i.rank for i in same if i.rank is not None) or "–",
         sum(item.events for item in same))
        for kind in kinds
        for same in [[item for item in inputs if item.kind == kind]]
    ]  # fmt: skip
