"""How times, shares, steps and culprits read, the same on every surface.

Everything here gives plain text; a surface escapes it for its own medium.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from teller.graph.finding import Culprit, Diagnosis, Finding, RunSummary, Verdict

VERDICTS: Final[dict[Verdict, str]] = {
    "fault": "Fault found",
    "no_fault": "No fault found",
    "data_quality": "The recording misleads",
    "not_visible": "Not visible in this recording",
}

# Control characters would move a terminal's cursor and end a table's row; marks that turn the
# direction of text would make a name look like another one.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """Give the text on one line, with what a terminal or a browser would act on spelt out."""
    return _UNSAFE.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    char = found[0]
    code = ord(char)
    return _ESCAPES.get(char) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def duration(ns: float) -> str:
    """Give a time span with three figures and its unit: "1.23 s", "840 µs"."""
    size = abs(ns)
    if size >= 120e9:
        minutes, seconds = divmod(round(size / 1e9), 60)
        sign = "-" if ns < 0 else ""
        return f"{sign}{minutes:,} min {seconds} s" if seconds else f"{sign}{minutes:,} min"
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if size >= limit * 0.9995:
            return f"{figures(ns / limit)} {unit}"
    return f"{figures(ns)} ns"


def figures(value: float) -> str:
    """Give a number with three figures, thousands parted, no exponent."""
    size = abs(value)
    if size >= 999.5 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.0f}" if size >= 99.95 else f"{value:.{1 if size >= 9.995 else 2}f}"


def share(part: float) -> str:
    """Give a share from 0 to 1 in percent; what is there but small is never "0 %"."""
    percent = part * 100
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{percent:.1f} %" if percent < 9.95 and percent != int(percent) else f"{percent:.0f} %"


def size(count: float) -> str:
    """Give a number of bytes in binary units: "1.5 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 999.5:
            return f"{figures(count)} {unit}"
        count /= 1024
    return f"{figures(count)} TiB"


def clock(epoch_ns: int) -> str:
    """Give a UTC time to the millisecond, or the bare number where no calendar has it."""
    seconds, rest = divmod(epoch_ns, 1_000_000_000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ns} ns since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest // 1_000_000:03d} UTC"


def when(run: RunSummary | None, time_ns: int | None) -> str:
    """Give the UTC time of a moment of a run, or its distance from the start without a clock."""
    if time_ns is None:
        return ""
    if run is None or run.t0_epoch_ns <= 0:
        return f"{duration(time_ns)} after the start of the recording"
    return clock(run.t0_epoch_ns + time_ns)


def ranges(numbers: Iterable[int]) -> str:
    """Give numbers in order with neighbours joined: "0–3, 7"."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in spans)


def some(names: Sequence[str], limit: int = 4) -> str:
    """Give the first names and how many more there are."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest:,} more" if rest > 0 else "")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Give a number with its noun: "1 rank", "1,024 ranks"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def parts(culprit: Culprit) -> list[tuple[str, str]]:
    """Give every kind of object that names the culprit, with its label, the blamed kind first."""
    links = [f"{a} → {b}" for a, b in culprit.links]
    found = [
        ("rank", ranges(culprit.ranks)), ("host", some(culprit.hosts)),
        ("device", some(culprit.devices)), ("link", some(links)), ("group", some(culprit.groups)),
        ("operator", some(culprit.operators)), ("component", some(culprit.components)),
        ("request", some(culprit.requests)),
    ]  # fmt: skip
    named = [(label, text) for label, text in found if text]
    return sorted(named, key=lambda item: item[0] != culprit.kind)


def who(culprit: Culprit) -> str:
    """Give the culprit in one line: "operator o_proj · rank 1 · host node-b"."""
    return " · ".join(f"{label} {text}" for label, text in parts(culprit)) or "nobody"


def steps(finding: Finding) -> str:
    """Give the steps of a finding: "steps 41–77 (30 of them)"."""
    first, last, count = finding.first_step, finding.last_step, finding.step_count
    if first is None or last is None:
        return counted(count, "step") if count else ""
    if first == last:
        return f"step {first:,}"
    within = last - first + 1
    inside = "" if count in (0, within) else f" ({counted(count, 'step')})"
    return f"steps {first:,}–{last:,}{inside}"


def cost(finding: Finding) -> str:
    """Give what a finding costs: "1.2 s, 12 % of the time, 2.4 s of GPU time"."""
    price = finding.cost
    found = [duration(price.excess_ns)] if price.excess_ns else []
    found += [f"{share(price.share)} of the time"] if price.share else []
    found += [f"{duration(price.gpu_seconds * 1e9)} of GPU time"] if price.gpu_seconds else []
    return ", ".join(found) or "no time lost that can be seen"


def measure(name: str, value: float) -> str:
    """Give a named figure in the unit that its name ends in: "excess 1.2 s", "ratio 2.9"."""
    stem, _, unit = name.rpartition("_")
    how = {"ns": duration, "bytes": size}.get(unit) if stem else None
    said = how(value) if how else figures(value)
    return f"{(stem if how else name).replace('_', ' ')} {said}"


def voices(finding: Finding) -> str:
    """Give who says so and how surely: "rules 0.90 · numeric 0.97"."""
    return " · ".join(f"{name} {value:.2f}" for name, value in finding.voices.items())


def way(finding: Finding) -> list[tuple[str, str]]:
    """Give the way from cause to effect: what happened, and the relations that show it."""
    return [
        (one.text, ", ".join(f"{e.src_kind} {e.src} {e.type} {e.dst_kind} {e.dst}"
                             for e in one.edges))
        for one in finding.explanation if one.part == "path"
    ]  # fmt: skip


def run_of(diagnosis: Diagnosis, finding: Finding) -> RunSummary | None:
    """Give the run that a finding is about."""
    return next((run for run in diagnosis.runs if run.id == finding.run), None)


def extent(run: RunSummary) -> str:
    """Give the size of a run: "8 ranks on 2 hosts, 120 steps"."""
    hosts = f" on {counted(len(run.hosts), 'host')}" if run.hosts else ""
    over = f", {over_target(run)}" if run.targets else ""
    return f"{counted(len(run.ranks), 'rank')}{hosts}, {counted(run.steps, 'step')}{over}"


def over_target(run: RunSummary) -> str:
    """Give how many requests missed a target: "3 of 40 requests over target (ttft 500 ms)"."""
    aims = ", ".join(f"{name} {duration(ns)}" for name, ns in run.targets.items())
    over = run.requests_over_target or 0
    return f"{over:,} of {counted(run.requests, 'request')} over target ({aims})"
