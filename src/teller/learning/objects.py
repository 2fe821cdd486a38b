"""Whether what is blamed is the object at fault: its kind, and that kind's list, as a set."""

from teller.graph import finding
from teller.ingest.operators import operator_of
from teller.lab import truth


def same(ours: finding.Culprit, theirs: truth.Culprit) -> bool:
    """Tell whether both are one object; of operators, one in common is enough."""
    if ours.kind != theirs.kind:
        return False
    said, true = (getattr(c, f"{theirs.kind}s", ()) for c in (ours, theirs))
    if theirs.kind == "operator":
        return bool(set(map(operator_of, said)) & set(map(operator_of, true)))
    return {*map(_plain, said)} == {*map(_plain, true)}


def _plain(value: object) -> object:
    return tuple(sorted(value)) if isinstance(value, (list, tuple)) else value
