"""Decoder layers on a tape: which kernels, by which operators, in which modules."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from teller.lab.simulator import catalog, dialect
from teller.lab.simulator.dialect import Dialect, torch_kernel
from teller.lab.simulator.extras import EXTRAS
from teller.lab.simulator.happened import HostKind
from teller.lab.simulator.scene import Scene
from teller.lab.simulator.tape import Tape, Work
from teller.lab.simulator.work import Shapes, six

# Operators above a kernel's launch, outermost first, by role; {e} is the engine's own namespace.
_CHAINS = {
    "qkv": ("aten::linear", "aten::mm"), "q": ("aten::linear", "aten::addmm"),
    "k": ("aten::linear", "aten::addmm"), "v": ("aten::linear", "aten::addmm"),
    "o_proj": ("aten::linear", "aten::mm"), "gate_up": ("aten::linear", "aten::mm"),
    "gate": ("aten::linear", "aten::mm"), "up": ("aten::linear", "aten::mm"),
    "down": ("aten::linear", "aten::mm"), "router": ("aten::linear", "aten::mm"),
    "lm_head": ("aten::linear", "aten::matmul", "aten::mm"), "norm": ("{e}::fused_add_rms_norm",),
    "first_norm": ("{e}::rms_norm",), "head_norm": ("{e}::rms_norm",),
    "rope": ("{e}::rotary_embedding",), "kv_store": ("{e}::reshape_and_cache_flash",),
    "attention": ("{e}::unified_attention_with_output",),
    "attention_reduce": ("{e}::unified_attention_with_output",), "act": ("{e}::silu_and_mul",),
    "topk": ("{e}::topk_softmax",), "align": ("{e}::moe_align_block_size",),
    "experts_up": ("{e}::moe_forward",), "experts_down": ("{e}::moe_forward",),
    "finalize": ("{e}::moe_sum",), "copy": ("aten::to", "aten::_to_copy", "aten::copy_"),
    "pow": ("aten::pow",), "mean": ("aten::mean",), "add": ("aten::add",),
    "rsqrt": ("aten::rsqrt",), "mul": ("aten::mul",), "neg": ("aten::neg",), "cat": ("aten::cat",),
    "residual": ("aten::add",), "silu": ("aten::silu",), "mul_act": ("aten::mul",),
    "embedding": ("aten::embedding", "aten::index_select"), "index": ("aten::index",),
    "softmax": ("aten::softmax", "aten::_softmax"), "argmax": ("aten::argmax",),
    "sample": ("{e}::top_k_top_p_sampling",), "nonzero": ("aten::nonzero",),
}  # fmt: skip
_NAMESPACE = {"vllm": "_C", "sglang": "sgl_kernel", "trtllm": "trtllm"}
_TRITON = ("experts_up", "experts_down", "attention")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a step is made of: prefill or decode, graphs or not, and what differs by a fault.

    `fallback` names roles that run by another kernel, `own_all_reduce` says whether the engine's is
    used, `extras` are (tag, layer, role): done before that kernel, on ranks that ask for the tag.
    """

    prefill: bool
    graph: bool
    fallback: frozenset[str] = frozenset()
    own_all_reduce: bool = True
    extras: tuple[tuple[str, int, str], ...] = ()
    first: bool = True  # pipeline stage with the embedding
    last: bool = True  # pipeline stage with the head
    layers: tuple[int, int] = (0, 0)  # from, to


@dataclass(slots=True)
class Layers:
    """Puts layers of one scene onto a tape."""

    scene: Scene
    names: Dialect
    tape: Tape
    kind: Kind
    shapes: Shapes = field(init=False)

    def __post_init__(self) -> None:
        """Work out the shapes."""
        ep = 1 + max(p.ep for p in self.scene.places)
        self.shapes = Shapes(self.scene.model, self.scene.tp, ep)

    @property
    def expert_parallel(self) -> bool:
        """Tell whether experts are spread over ranks."""
        return bool(self.scene.model.experts) and max(p.ep for p in self.scene.places) > 0

    def kernel(self, role: str, name: str = "", work: Work | None = None) -> None:
        """Launch the kernel of a role under its operators."""
        known = work or self.shapes.of(role)
        if not name:
            fallen = role in self.kind.fallback
            name = (
                dialect.fallback(role) if fallen
                else self.names.kernel(role, prefill=self.kind.prefill)
            )  # fmt: skip
        driver = role in _TRITON and "::" not in name
        with self.operators(role):
            self.tape.kernel(name, known, "cuLaunchKernelEx" if driver else "cudaLaunchKernel")

    @contextmanager
    def operators(self, role: str) -> Iterator[None]:
        """Open the operators of a role; in a graph there are none."""
        if self.in_graph or not self.names.operators:
            if not self.in_graph:
                self.tape.spend(catalog.host("operator"))
            yield
            return
        space = _NAMESPACE[self.scene.engine]
        own = catalog.host("operator")
        with ExitStack() as stack:
            for name in _CHAINS.get(role, ()):
                stack.enter_context(
                    self.tape.span(name.format(e=space), HostKind.OPERATOR, own * 0.6, own * 0.4)
                )
            yield

    @property
    def in_graph(self) -> bool:
        """Tell whether kernels go into a graph just now."""
        return self.tape.recording

    @contextmanager
    def module(self, name: str) -> Iterator[None]:
        """Open a module's range, where these are recorded."""
        own = catalog.host("module")
        if self.in_graph or not self.names.modules:
            self.tape.spend(0.0 if self.in_graph else own)
            yield
            return
        with self.tape.span(name, HostKind.MODULE, own, own * 0.3):
            yield

    def torch(self, role: str, times: int = 1) -> None:
        """Launch a kernel of torch's own."""
        for _ in range(times):
            self.kernel(role, torch_kernel(role if role != "mul_act" else "mul"))

    def layer(self, number: int) -> None:
        """Put one layer on the tape."""
        at = f"model.layers.{number}"
        with self.module(at):
            with self.module(f"{at}.input_layernorm"):
                self._norm("norm" if number else "first_norm", number)
            with self.module(f"{at}.self_attn"):
                self._attention(number, f"{at}.self_attn")
            with self.module(f"{at}.post_attention_layernorm"):
                self._norm("norm", number)
            with self.module(f"{at}.mlp"):
                if self.scene.model.experts:
                    self._experts(number)
                else:
                    self._mlp(number, f"{at}.mlp")

    def _norm(self, role: str, number: int) -> None:
        self._extras(number, role)
        if not self.names.native:
            self.kernel(role)
            return
        if role == "norm":
            self.torch("residual")
        for part in ("copy", "pow", "mean", "add", "rsqrt", "mul", "copy", "mul"):
            self.torch(part)

    def _attention(self, number: int, at: str) -> None:
        native = self.names.native
        for role in ("q", "k", "v") if native else ("qkv",):
            with self.module(f"{at}.{role}_proj"):
                self._product(role, number)
        if "Qwen3" in self.scene.model.name:
            for _ in ("q", "k"):
                if self.scene.engine == "sglang":
                    self.torch("copy")
                self.kernel("head_norm")
        if native:
            self.torch("index", 2)
            for part in ("mul", "neg", "cat", "mul", "residual") * 2:
                self.torch(part)
        else:
            self.kernel("rope")
        with self.module(f"{at}.attn"):
            self._extras(number, "attention")
            self.kernel("kv_store")
            self.kernel("attention")
            if not self.kind.prefill:
                self.kernel("attention_reduce")
            if native:  # cache, repeated heads, scaled and masked scores
                for part in ("cat", "cat", "copy", "copy", "mul", "add", "mean", "copy", "copy"):
                    self.torch(part)
        with self.module(f"{at}.o_proj"):
            self._product("o_proj", number)
            self.all_reduce(number)

    def _product(self, role: str, number: int) -> None:
        self._extras(number, role)
        if self.names.native and role in ("q", "k", "v", "o_proj", "gate", "up", "down"):
            self.memset()
        self.kernel(role)

    def memset(self) -> None:
        """Clear the workspace of a split product."""
        if not self.in_graph:
            self.tape.memset()

    def _mlp(self, number: int, at: str) -> None:
        native = self.names.native
        for role in ("gate", "up") if native else ("gate_up",):
            with self.module(f"{at}.{role}_proj"):
                self._product(role, number)
        with self.module(f"{at}.act_fn"):
            self._extras(number, "act")
            if native:
                self.torch("silu")
                self.torch("mul_act")
            else:
                self.kernel("act")
        with self.module(f"{at}.down_proj"):
            self._product("down", number)
            self.all_reduce(number)

    def _experts(self, number: int) -> None:
        spread = self.expert_parallel
        for role in ("router", "topk", "align"):
            self.kernel(role)
        if spread:
            self._exchange("dispatch")
        self._extras(number, "experts_up")
        for role in ("experts_up", "act", "experts_down"):
            self.kernel(role)
        if spread:
            self._exchange("combine")
        self.kernel("finalize")
        if not spread:
            self.all_reduce(number)

    def _exchange(self, what: str) -> None:
        used = min(self.scene.model.experts_used, 1 + max(p.ep for p in self.scene.places))
        size = six(token=self.shapes.activation * used)
        kernel = f"void deep_ep::intranode::{what}<8, 768, 8192>(int4*, float*, int*)"
        if len({p.host for p in self.scene.places}) > 1:
            kernel = f"void deep_ep::internode_ll::{what}<false, 3, 10, 4096>(void*, float*, int*)"
        with self.operators(""):
            self.tape.collective(kernel, "ep", "all_to_all", size, own=False)

    def all_reduce(self, number: int) -> None:
        """Add up over the tensor-parallel ranks, where there are some."""
        if self.scene.tp == 1:
            return
        self._extras(number, "all_reduce")
        size = six(token=self.shapes.activation)
        own = self.kind.own_all_reduce and "{ranks}" in self.names.kernel(
            "all_reduce", prefill=False
        )
        own = own and not self.kind.prefill and self.scene.tp in (2, 4, 8) and self._one_host
        if own:
            kernel = self.names.kernel("all_reduce", prefill=False).format(ranks=self.scene.tp)
            with self._reduction("_C_custom_ar::all_reduce"):
                self.tape.collective(kernel, "tp", "all_reduce", size, own=True)
        else:
            with self._reduction("c10d::allreduce_"):
                self.tape.collective(
                    self.names.all_reduce, "tp", "all_reduce", size, own=False, api="ncclAllReduce"
                )

    @property
    def _one_host(self) -> bool:
        first = [p for p in self.scene.places if p.pp == 0 and p.dp == 0]
        return len({p.host for p in first}) == 1

    @contextmanager
    def _reduction(self, name: str) -> Iterator[None]:
        if self.in_graph or not self.names.operators:
            yield
            return
        with self.tape.span("vllm::all_reduce" if self.scene.engine == "vllm" else name,
                            HostKind.OPERATOR, 2600.0, 900.0):  # fmt: skip
            yield

    def _extras(self, number: int, role: str) -> None:
        for tag, layer, where in self.kind.extras:
            if (layer, where) == (number, role) and not self.in_graph:
                with self.tape.tagged(tag):
                    EXTRAS[tag](self.tape)
