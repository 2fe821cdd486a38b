"""Errors that are ours.

TellerError
├── BadUsage         the command asks for something that cannot be
├── NothingUsable    no input could be used
├── UnknownName      a label, query, rule, class or run that does not exist
├── SchemaMismatch   a table that does not fit the schema
├── QueryRefused     a query that the store does not let through
│   └── TooMuch      one that needs more time or memory than it may take
├── NoRoom           the disk is full
├── NoCluster        the workers that were asked for cannot be used
└── StoreBusy        another process owns the store
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TellerError(Exception):
    """Base of all errors that a user may see; its text says what would have been right."""


class BadUsage(TellerError):
    """The command asks for something that cannot be."""


class NothingUsable(TellerError):
    """No input could be used."""


class UnknownName(TellerError):
    """A name that does not exist, with those that do."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        """Say what kind of name it is, and list the known ones, nearest first."""
        names = sorted(known)
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        hint = (
            f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
        )
        super().__init__(f"no {what} {name!r}; {hint}")


class SchemaMismatch(TellerError):
    """A table that does not fit the schema."""


class QueryRefused(TellerError):
    """A query that the store does not let through."""


class TooMuch(QueryRefused):
    """A query that needs more time or memory than it may take."""


class NoRoom(TellerError):
    """The disk is full."""

    def __init__(self, place: str) -> None:
        """Name the place that could not be written."""
        super().__init__(f"{place}: no space is left there; make room, or name another place")


class NoCluster(TellerError):
    """The workers that were asked for cannot be used."""


class StoreBusy(TellerError):
    """Another process owns the store."""
