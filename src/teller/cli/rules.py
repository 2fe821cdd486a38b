"""`teller rules`: what can be found, by which rule, and whether one's own rules are right."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from teller.models.rule import Rule
    from teller.trials import Tried

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="How to say it.")]


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, epilog="Example: teller rules list"
    )
    group.command("list", epilog="Example: teller rules list --rules my-rules/")(list_rules)
    group.command("show", epilog="Example: teller rules show slow_operator")(show_rule)
    group.command("run", epilog="Example: teller rules run slow_operator NAME")(run_rule)
    group.command("test", epilog="Example: teller rules test my-rules/")(check_rules)
    app.add_typer(group, name="rules", help="List the rules, show or run one, or test your own.")


def list_rules(rules: options.RulesDir = None, format: Format = "text") -> int:
    """List the rules: id, the class that each claims, and what it says."""
    from teller.models import rule
    from teller.ui import text

    found = rule.rules(rules).values()
    if format == "json":
        said = [{"id": r.id, "class": r.klass, "title": r.title, "claim": r.claim} for r in found]
        out.write(out.as_json(said), None)
        return 0
    table = text.plain_table("Rule", "class", "what it says")
    for each in found:
        table.add_row(
            text.word(each.id), text.word(each.klass), text.word(" ".join(each.claim.split()))
        )
    text.show(text.console(sys.stdout), [table])
    return 0


def show_rule(
    rule: Annotated[str, typer.Argument(metavar="ID", help="As teller rules list has it.")],
    rules: options.RulesDir = None,
    format: Format = "text",
) -> int:
    """Show a rule: query, thresholds, sentence, next step, and what argues against it."""
    import msgspec

    from teller.models.rule import rule_named

    found = rule_named(rule, rules)
    if format == "json":
        out.write(out.as_json(msgspec.to_builtins(found)), None)
    else:
        out.write("\n".join(_lines(found)) + "\n", None)
    return 0


def _lines(rule: "Rule") -> Iterator[str]:
    from teller.graph.classes import class_named

    claimed = class_named(rule.klass)
    yield f"{rule.id}: claims {rule.klass}, {rule.confidence:.2f} sure"
    yield f"Class: {claimed.title} ({claimed.verdict}; case class {claimed.cases})"
    yield from ("", rule.claim.strip(), "", f"Title: {rule.title.strip()}")
    yield f"Text: {rule.text.strip()}"
    yield f"Next: {rule.next_step.strip()}"
    if rule.unless:
        yield f"Silent where these blame the same: {', '.join(rule.unless)}"
    yield from _figures("Thresholds", rule.thresholds)
    yield from _queries(rule)
    for shown in rule.evidence:
        yield from ("", f"Shows as {shown.role} ({shown.text.strip()}):", shown.cypher.strip())
    for against in rule.against:
        yield from ("", f"Against it ({against.text.strip()}):", against.cypher.strip())
    for text in rule.not_checked:
        yield f"Not checked: {text.strip()}"


def _figures(head: str, figures: "Mapping[str, object]") -> Iterator[str]:
    if figures:
        yield from ("", f"{head}:", *(f"  {name} = {value}" for name, value in figures.items()))


def _queries(rule: "Rule") -> Iterator[str]:
    """Give what the rule asks, of the run and of the healthy run."""
    if rule.usual:
        yield from ("", "Asks the healthy run first (each column as $usual_COLUMN):")
        yield rule.usual.cypher.strip()
    if rule.find:
        slow = " in each stretch in which a rank is slower than its peers"
        yield from ("", f"Finds by{slow if rule.each == 'episode' else ''}:", rule.find.strip())
    if rule.compare:
        asked = rule.compare
        alike = f" at equal {', '.join(asked.load)}" if asked.load else ""
        yield from ("", f"Compares with the healthy run, by {', '.join(asked.keys)}{alike}:")
        yield asked.cypher.strip()
        limits = {n: getattr(asked, n) for n in ("min_factor", "min_share", "dominance")}
        yield from _figures("It stands from", limits)
    if rule.episode:
        yield from ("", "Its steps:", rule.episode.cypher.strip())


def run_rule(
    rule: Annotated[str, typer.Argument(metavar="ID", help="As teller rules list has it.")],
    run: Annotated[
        str, typer.Argument(metavar="ID|NAME", help="A stored run; else the latest.")
    ] = "",
    format: Format = "text",
    baseline: options.Baseline = "",
    workspace: options.WorkspaceDir = None,
    store: options.StoreUri = "embedded",
    rules: options.RulesDir = None,
    quiet: options.Quiet = False,
) -> int:
    """Ask one rule of a stored run: its rows, its thresholds, and what it finds; keeps nothing.

    Exit code: 0 it finds nothing, 1 it finds something.
    """
    import msgspec

    from teller import pipeline, trials
    from teller.models.rule import rule_named
    from teller.ui import progress

    asked = rule_named(rule, rules)
    place = options.workspace_at(workspace, store)
    entry = options.run_named(place, run)
    wanted = pipeline.Options(baseline=baseline, rules_dir=rules)
    with progress.shown_on(sys.stderr, quiet=quiet) as bars:
        given = trials.try_rule(place, asked, entry.run_id, wanted, bars)
    if format == "json":
        said = {
            "rule": asked.id, "run": str(entry.run_id), "thresholds": dict(asked.thresholds),
            "rows": msgspec.to_builtins(given.rows),
            "findings": [finding.to_json() for finding in given.findings],
        }  # fmt: skip
        out.write(out.as_json(said), None)
    else:
        from teller.ui import rulings, text

        compared = bool(asked.compare or asked.usual) and not baseline
        text.show(
            text.console(sys.stdout), rulings.given(asked.thresholds, given.rows, given.findings)
        )
        if compared:
            out.note("it compares with a healthy run: name one with --baseline", quiet=quiet)
    return int(bool(given.findings))


def check_rules(
    path: Annotated[
        Path, typer.Argument(metavar="FILE.toml|DIR", exists=True, help="Your own rules.")
    ],
    format: Format = "text",
    rules: options.RulesDir = None,
) -> int:
    """Check your own rules, and try each on the examples that it names.

    A rule NAME.toml may have tables [[example]] with path (in the folder NAME.examples beside it)
    and expect ("finds" or "silent"). Exit code: 0 all is right, 1 something is wrong.
    """
    from teller import pipeline, trials

    tried = trials.check(path, pipeline.Options(rules_dir=rules))
    if format == "json":
        out.write(out.as_json([_tried(one) for one in tried]), None)
    else:
        from teller.ui import phrase

        lines = (phrase.visible(line) for one in tried for line in _verdict(one))
        out.write("".join(f"{line}\n" for line in lines), None)
    return 0 if all(one.good for one in tried) else 1


def _tried(one: "Tried") -> dict[str, object]:
    return {
        "file": str(one.checked.path),
        "rule": one.checked.rule.id if one.checked.rule else None,
        "good": one.good,
        "flaws": [{"line": flaw.line, "what": flaw.what} for flaw in one.checked.flaws],
        "examples": [
            {"path": t.example.path, "expect": t.example.expect, "found": list(t.titles),
             "wrong": t.wrong}
            for t in one.trials
        ],
    }  # fmt: skip


def _verdict(one: "Tried") -> Iterator[str]:
    """Give a line a flaw and a line an example, in the form in which compilers name places."""
    file = one.checked.path
    for flaw in one.checked.flaws:
        place = f"{file}:{flaw.line}" if flaw.line else f"{file}"
        yield f"{place}: rule {flaw.rule}: {flaw.what}"
    rule = one.checked.rule
    if rule is None or one.checked.flaws:
        return
    for trial in one.trials:
        wanted = f"example {trial.example.path} ({trial.example.expect})"
        yield f"{file}: rule {rule.id}: {wanted}: {trial.wrong or 'right'}"
    if one.good:
        count = len(one.trials)
        said = f"and on {count} of its examples" if count else "; it names no [[example]]"
        yield f"{file}: rule {rule.id}: right as it stands {said}".replace(" ;", ";")
