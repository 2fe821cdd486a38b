"""The classes that a finding can claim, carried as data in `classes.toml`."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from teller.errors import UnknownName


class ClaimClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One class: what it says, which verdict it leads to, and who can be its culprit."""

    name: str
    title: str
    verdict: Literal["fault", "no_fault", "data_quality"]
    cases: str  # class of the case vocabulary
    culprits: tuple[str, ...]
    siblings: str  # group of classes that may be mistaken for each other
    faults: tuple[str, ...]  # of the list of faults
    testbed: tuple[str, ...]  # disturbances that the testbed makes
    also_changes: tuple[str, ...]  # counts, names or text: what the fault changes beside times
    model: bool = False  # a head of the model claims it
    neither: str = ""  # why no rule and no model claims it, and what would show it


@cache
def classes() -> dict[str, ClaimClass]:
    """Give all classes by name."""
    said = tomllib.loads(files("teller.graph").joinpath("classes.toml").read_text("utf-8"))
    return {c.name: c for c in msgspec.convert(said["class"], list[ClaimClass])}


def class_named(name: str) -> ClaimClass:
    """Give one class."""
    if name not in classes():
        raise UnknownName("class", name, classes())
    return classes()[name]
