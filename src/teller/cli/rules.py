"""`teller rules`: what can be found, and by which rule."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from teller.cli import options, out

if TYPE_CHECKING:
    from teller.models.rule import Rule

Format = Annotated[Literal["text", "json"], typer.Option("--format", help="How to say it.")]


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, epilog="Example: teller rules list"
    )
    group.command("list", epilog="Example: teller rules list --rules my-rules/")(list_rules)
    group.command("show", epilog="Example: teller rules show slow_operator")(show_rule)
    app.add_typer(group, name="rules", help="List the rules, or show one.")


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
    yield f"{rule.id}: claims {rule.klass}, {rule.confidence:.2f} sure"
    yield from ("", rule.claim.strip(), "", f"Title: {rule.title.strip()}")
    yield f"Text: {rule.text.strip()}"
    yield f"Next: {rule.next_step.strip()}"
    if rule.thresholds:
        yield from ("", "Thresholds:", *(f"  {k} = {v}" for k, v in rule.thresholds.items()))
    yield from ("", "Finds by:", rule.find.strip())
    if rule.episode:
        yield from ("", "Its steps:", rule.episode.cypher.strip())
    for shown in rule.evidence:
        yield from ("", f"Shows as {shown.role} ({shown.text.strip()}):", shown.cypher.strip())
    for against in rule.against:
        yield from ("", f"Against it ({against.text.strip()}):", against.cypher.strip())
    for text in rule.not_checked:
        yield f"Not checked: {text.strip()}"
