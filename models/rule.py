"""Rules as data: one TOML file each, found by name; users add their own from a folder.

A rule *finds* candidates by Cypher, one row each, for the run or for each stretch in which a rank
was slower than its peers (`each = "episode"`), or by comparing with a healthy run (`compare`, or
`usual` with `find`); an *episode*
query may give the candidate's excess step by step; *evidence* and *against* queries give what shows
it and what speaks against it.
Every query gets `$run`, the thresholds and the columns of the candidate's row as parameters.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from teller.errors import BadUsage, UnknownName
from teller.graph.classes import class_named

RULESET: Final = "rules"


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query whose rows are evidence: `id`, where it was read, and then figures.

    Where: `input_id` and, for what has lines, `line`; or `path`; or `rank`, whose file it then is.
    """

    role: str
    kind: Literal[
        "Span", "Collective", "Step", "LogLine", "Rank", "Sample", "Remark", "Input", "Request",
        "ProcessGroup",
    ]  # fmt: skip
    cypher: str
    text: str
    limit: int = 3


class Against(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What speaks against: where the query gives rows, the sentence is said and sureness falls."""

    cypher: str
    text: str
    lowers: float = 0.1


class EpisodeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gives `step_index, excess_ns, start_ns, end_ns` a step; fewer than `min_steps` is nothing."""

    cypher: str
    min_steps: int = 1
    min_density: float = 0.0  # share of the steps from first to last that stand out
    max_cover: float = (
        1.0  # share of all steps: what fills the run has no other steps to differ from
    )


class Compare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Asked of the run and of its baseline; rows of equal `keys` make one candidate.

    The query gives the keys, the columns of `load`, `each_ns` and `calls`. Only rows of equal load
    are compared; the loads of one key are summed up, each by its calls. The candidate has the run's
    columns, and `usual_ns` (the baseline's `each_ns`), `factor`, `over_ns` (for all calls) and
    `over_share` (of what all keys are over). It stands from `min_factor` and `min_share` of the
    run's step time on, if it is `dominance` of all that is over.
    """

    keys: tuple[str, ...]
    cypher: str
    load: tuple[str, ...] = ()
    min_factor: float = 1.15
    min_share: float = 0.02
    dominance: float = 0.5


class Usual(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Asked of the baseline: each of its rows asks `find` anew, with `$usual_COLUMN`."""

    cypher: str


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that the rule is to find something in, or to be silent on.

    `path` lies in the folder `NAME.examples` beside the rule's file `NAME.toml`.
    """

    path: str
    expect: Literal["finds", "silent"]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"klass": "class"}):
    """One rule."""

    id: str
    klass: str
    title: str
    claim: str  # what it says and when, for people who read rules
    text: str
    next_step: str
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    find: str = ""
    each: Literal["run", "episode"] = "run"  # `find` is asked once, or for each slow stretch
    compare: Compare | None = None  # instead of `find`: silent where there is no baseline
    usual: Usual | None = None  # beside `find`: silent where there is no baseline
    culprit: tuple[str, ...] = ()  # columns of the row that are the culprit: rank, operator, …
    components: tuple[str, ...] = ()  # of the engine; a column `component` names others
    severity: Literal["", "critical", "high", "medium", "low", "info"] = ""
    thresholds: Mapping[str, float | int] = {}
    unless: tuple[str, ...] = ()  # silent where one of these rules blames the same rank
    episode: EpisodeQuery | None = None
    evidence: tuple[Shown, ...] = ()
    against: tuple[Against, ...] = ()
    not_checked: tuple[str, ...] = ()
    numbers: Mapping[str, str] = {}  # name with its unit → column
    example: tuple[Example, ...] = ()  # for `teller rules test`


def rules(extra: Path | None = None) -> dict[str, Rule]:
    """Give all rules by id, the user's own instead of ours where the ids are equal."""
    return _ours() | ({r.id: r for r in _folder(extra)} if extra else {})


def rule_named(name: str, extra: Path | None = None) -> Rule:
    """Give one rule."""
    known = rules(extra)
    if name not in known:
        raise UnknownName("rule", name, known)
    return known[name]


@cache
def _ours() -> dict[str, Rule]:
    folder = files("teller.models").joinpath("rules")
    found = [
        parse(f.name, f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".toml")
    ]
    return {r.id: r for r in sorted(found, key=lambda r: r.id)}


def _folder(folder: Path) -> Iterator[Rule]:
    if not folder.is_dir():
        raise BadUsage(f"{folder} is not a folder of rules")
    for path in sorted(folder.glob("*.toml")):
        yield parse(str(path), path.read_bytes().decode("utf-8", "replace"))


def parse(name: str, text: str) -> Rule:
    """Give the rule that a file of that name holds, or say what is wrong with it."""
    try:
        said: dict[str, Any] = tomllib.loads(text)
        rule = msgspec.convert(said, Rule)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadUsage(f"rule {name}: {error}") from error
    if bool(rule.find) == bool(rule.compare):
        raise BadUsage(f"rule {name}: it needs one of find and compare")
    try:
        class_named(rule.klass)
    except UnknownName as error:
        raise BadUsage(f"rule {name}: {error}") from error
    return rule
