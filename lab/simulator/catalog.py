"""The numbers of `numbers.toml` as objects."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from teller.lab.simulator.scene import Gpu, Model


@cache
def numbers() -> dict[str, Any]:
    """Give the whole table."""
    text = files("teller.lab.simulator").joinpath("numbers.toml").read_text("utf-8")
    return tomllib.loads(text)


def gpu(key: str) -> Gpu:
    """Give a kind of device by its key."""
    return Gpu(**numbers()["gpu"][key])


def model(key: str) -> Model:
    """Give a model by its key."""
    return Model(**numbers()["model"][key])


def models() -> tuple[str, ...]:
    """Give the keys of all models."""
    return tuple(numbers()["model"])


def host(call: str) -> float:
    """Give the time in ns that a call takes on a host of speed 1."""
    return float(numbers()["host"][call])
