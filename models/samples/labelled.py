"""Runs that can be learnt from: samples, labels, and what splits need to know of each."""

from dataclasses import dataclass
from typing import Final

import msgspec

from teller.models.samples.labels import Labels
from teller.models.samples.sample import Samples

ABOUT: Final = "about.json"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a kept run is: whose relative, and what splits need to know of it."""

    run: str
    root_seed: int
    twin: bool
    engine: str
    model: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """One run, ready to learn from."""

    about: About
    samples: Samples
    labels: Labels
