"""Explanations: sentences out of the graph, each proved by it before anybody reads it."""

from teller.models.explain.explain import Explained, explained, told, why
from teller.models.explain.proof import Again, Proof

__all__ = ["Again", "Explained", "Proof", "explained", "told", "why"]
