"""The classes that a finding can claim, carried as data in `classes.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from teller.errors import UnknownName


@dataclass(frozen=True, slots=True)
class ClaimClass:
    """One class: what it says, which verdict it leads to, and who can be its culprit."""

    name: str
    title: str
    verdict: Literal["fault", "no_fault", "data_quality"]
    cases: str  # class of the case vocabulary
    culprits: tuple[str, ...]
    siblings: str  # group of classes that may be mistaken for each other


@cache
def classes() -> dict[str, ClaimClass]:
    """Give all classes by name."""
    said = tomllib.loads(files("teller.graph").joinpath("classes.toml").read_text("utf-8"))
    return {
        c["name"]: ClaimClass(
            c["name"], c["title"], c["verdict"], c["cases"], tuple(c["culprits"]), c["siblings"]
        )
        for c in said["class"]
    }


def class_named(name: str) -> ClaimClass:
    """Give one class."""
    if name not in classes():
        raise UnknownName("class", name, classes())
    return classes()[name]
