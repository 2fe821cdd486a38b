"""The work of each role in a decoder: flops and bytes as a share of one tensor-parallel rank.

Matrix products read their weights once a step and do two flops a weight and token; attention reads
the cache; all else streams activations. What a device reaches of its peaks is in `numbers.toml`.
"""

import numpy as np

from teller.lab.simulator.program import CACHED, CONSTANT, EXPERT, PAIR, SAMPLE, TOKEN
from teller.lab.simulator.scene import DTYPE_BYTES, Model
from teller.lab.simulator.tape import Six, Work

_ROWS = {  # bytes a token, in activations of `hidden` numbers
    "norm": 4.0, "first_norm": 2.0, "residual": 3.0, "embedding": 2.0, "finalize": 3.0,
    "align": 0.1, "topk": 0.1, "index": 2.0,
}  # fmt: skip
_NATIVE_NORM = {"copy": 3.0, "pow": 4.0, "mean": 2.0, "add": 0.1, "rsqrt": 0.1, "mul": 3.0}


def six(**columns: float) -> Six:
    """Give the columns of `work` by their names; others are 0."""
    at = {
        "constant": CONSTANT, "token": TOKEN, "sample": SAMPLE, "cached": CACHED, "pair": PAIR,
        "expert": EXPERT,
    }  # fmt: skip
    row = np.zeros(6)
    for name, value in columns.items():
        row[at[name]] = value
    a, b, c, d, e, f = row.tolist()
    return (a, b, c, d, e, f)


class Shapes:
    """Gives the work of each role of one model, cut over `tp` ranks; experts over `ep`."""

    def __init__(self, model: Model, tp: int, ep: int) -> None:
        """Take the sizes."""
        self._model, self._tp, self._ep = model, tp, ep
        heads, kv = model.heads * model.head, model.kv_heads * model.head
        self._products = {
            "qkv": (heads + 2 * kv, model.hidden), "q": (heads, model.hidden),
            "k": (kv, model.hidden), "v": (kv, model.hidden), "o_proj": (model.hidden, heads),
            "gate_up": (2 * model.ffn, model.hidden), "gate": (model.ffn, model.hidden),
            "up": (model.ffn, model.hidden), "down": (model.hidden, model.ffn),
        }  # fmt: skip

    @property
    def activation(self) -> float:
        """Give the bytes of one token's activation."""
        return float(self._model.hidden * DTYPE_BYTES)

    @property
    def logits(self) -> float:
        """Give the bytes of one sample's logits on one rank."""
        return self._model.vocab / self._tp * DTYPE_BYTES

    def of(self, role: str) -> Work:
        """Give the work of a role."""
        if role in self._products:
            n, k = self._products[role]
            return self._product(role, n * k / self._tp, (n + k) / self._tp)
        if role == "lm_head":
            weights = self._model.vocab / self._tp * self._model.hidden
            flops, moved = six(sample=2 * weights), six(constant=weights * DTYPE_BYTES)
            return Work(role, "gemm", flops, moved)
        if role == "router":
            weights = float(self._model.experts * self._model.hidden)
            return self._product(role, weights, self._model.experts + self._model.hidden)
        return self._other(role)

    def _product(self, role: str, weights: float, row: float) -> Work:
        moved = six(constant=weights * DTYPE_BYTES, token=row * DTYPE_BYTES)
        return Work(role, "gemm", six(token=2 * weights), moved)

    def _other(self, role: str) -> Work:
        model, tp = self._model, self._tp
        heads = model.heads * model.head / tp
        if role == "attention":
            cache = 2 * max(model.kv_heads / tp, 1) * model.head * DTYPE_BYTES
            return Work(role, "attention", six(pair=4 * heads), six(cached=cache, token=4 * heads))
        if role in ("experts_up", "experts_down"):
            return self._experts(role)
        if role in ("rope", "kv_store", "head_norm", "attention_reduce"):
            return Work(role, bytes=six(token=3 * heads * DTYPE_BYTES))
        if role in ("act", "silu", "mul_act"):
            ffn = model.ffn if not model.experts else model.ffn * model.experts_used
            return Work(role, bytes=six(token=3 * ffn / tp * DTYPE_BYTES))
        if role in ("softmax", "argmax", "sample"):
            share = 2 * model.vocab * 4.0
            return Work(role, bytes=six(sample=share))
        amount = _ROWS.get(role, _NATIVE_NORM.get(role, 1.0))
        return Work(role, bytes=six(token=amount * self.activation))

    def _experts(self, role: str) -> Work:
        """Give a grouped product: it reads the experts that some token chose."""
        model = self._model
        cut = self._ep if self._ep > 1 else self._tp
        parts = 2 if role == "experts_up" else 1
        weights = parts * model.ffn * model.hidden / (1 if self._ep > 1 else self._tp)
        flops = 2 * parts * model.ffn * model.hidden * model.experts_used / cut
        return Work(role, "gemm", six(token=flops), six(expert=weights * DTYPE_BYTES))
