"""What the documents say is true: commands are named, links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from teller import cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
SKIP = {".venv", ".venv-bench", "node_modules", "build", "dist"}
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*.md")
    if not SKIP & set(path.relative_to(ROOT).parts) and "src/teller/" not in path.as_posix()
)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def commands() -> Iterator[tuple[str, str | None]]:
    """Give every command with its help, `rules list` as well as `rules`."""
    [app] = [v for v in vars(cli).values() if isinstance(v, typer.Typer)][:1]
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        if name:
            yield name, command.help
        for below, inner in getattr(command, "commands", {}).items():
            if not inner.hidden:  # what a group does with words that name no command
                waiting.append((f"{name} {below}".strip(), inner))


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_has_help_and_is_in_the_readme(name: str) -> None:
    assert COMMANDS[name]
    assert f"teller {name}" in README


def test_the_readme_names_no_command_that_is_not_there() -> None:
    named = set(re.findall(r"^teller ([a-z]+)", README, flags=re.MULTILINE))
    assert named <= {name.split()[0] for name in COMMANDS}


@pytest.mark.parametrize("page", PAGES)
def test_a_link_between_pages_leads_somewhere(page: str) -> None:
    links = {target for target, _ in LINK.findall((ROOT / page).read_text())}
    near = {link for link in links if not re.match(r"[a-z]+:", link)}
    assert not {link for link in near if not (ROOT / page).parent.joinpath(link).exists()}


def test_the_architecture_page_names_files_that_are_there() -> None:
    named = re.findall(r"`([a-z]+/[\w/.*]+)`", (ROOT / "ARCHITECTURE.md").read_text())
    assert named
    assert not [name for name in named if not list(ROOT.glob(name.rstrip("/")))]


def test_each_decision_has_its_four_parts() -> None:
    for path in (ROOT / "docs" / "adr").glob("*.md"):
        heads = re.findall(r"^## (\w+)", path.read_text(), flags=re.MULTILINE)
        assert heads == ["Status", "Context", "Decision", "Consequences"], path.name


def test_the_makefile_has_what_the_readme_promises() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets
