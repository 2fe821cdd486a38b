"""How one run's engine and libraries name things: drawn once a run, from lists of real names."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from teller.lab.simulator.scene import Scene

_HOPPER = ("H100", "H200")
_PRODUCTS = ("qkv", "q", "k", "v", "o_proj", "gate_up", "gate", "up", "down", "lm_head", "router")


@cache
def _lists() -> dict[str, Any]:
    text = files("teller.lab.simulator").joinpath("kernels.toml").read_text("utf-8")
    return tomllib.loads(text)


def torch_kernel(key: str) -> str:
    """Give the name of one of torch's own kernels."""
    return str(_lists()["torch"][key])


def fallback(role: str) -> str:
    """Give the kernel that a role falls back to."""
    table = _lists()["fallback"]
    return str(table.get(role, table["gemm"]))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names of one run. `kernels` has those of the engine by role, for decode and prefill."""

    kernels: dict[str, tuple[str, str]]
    all_reduce: str
    step_form: int  # which of the engine's ways to name a step
    scopes: bool  # the engine's own ranges are switched on
    modules: bool  # ranges of the model's modules
    operators: bool  # operators of the framework are recorded
    native: bool  # eager without the engine's fused kernels

    def kernel(self, role: str, *, prefill: bool) -> str:
        """Give the kernel of a role."""
        return self.kernels[role][prefill]


def draw(scene: Scene, random: np.random.Generator) -> Dialect:
    """Draw the names of a run."""
    lists, kernels = _lists(), {}
    family = "hopper" if any(h in scene.gpu.name for h in _HOPPER) else "ampere"
    form = lists["gemm"][family][random.integers(len(lists["gemm"][family]))]
    for role in _PRODUCTS:
        kernels[role] = (_tiled(form, random, small=True), _tiled(form, random, small=False))
    engine = lists[scene.engine]
    drawn = {role: int(random.integers(len(names))) for role, names in engine.items()}
    for role, names in engine.items():  # a reduction belongs to its attention
        i = drawn["attention" if role == "attention_reduce" else role] % len(names)
        kernels[role] = (names[i], names[i])
    native = scene.mode == "eager" and random.random() < 0.4
    return Dialect(
        kernels,
        f"ncclDevKernel_AllReduce_Sum_bf16_{'RING_LL' if random.random() < 0.6 else 'TREE_LL'}"
        "(ncclDevKernelArgsStorage<4096ul>)",
        int(random.integers(3)),
        scopes=bool(random.random() < 0.6),
        modules=bool(random.random() < 0.35),
        operators=bool(random.random() < 0.85),
        native=bool(native),
    )


def _tiled(form: str, random: np.random.Generator, *, small: bool) -> str:
    m = random.choice([64, 128] if small else [128, 192, 256])
    n = random.choice([8, 16, 32, 64] if small else [128, 192, 256])
    return form.format(m=m, n=n, k=random.choice([3, 4, 6, 8]), c=random.choice([1, 2]))
