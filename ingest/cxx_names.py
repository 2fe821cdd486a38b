"""C++ function names, demangled or mangled, cut down to the function and the functor it runs."""

import re
from typing import Final

LOOKED_AT: Final = 1500  # characters of a name: the functor stands in front

# Kernels that are a shell around a functor; their own name says nothing of the work.
_SHELLS: Final = """
    vectorized_elementwise_kernel elementwise_kernel unrolled_elementwise_kernel
    legacy_elementwise_kernel elementwise_kernel_manual_unroll
    vectorized_templated_elementwise_kernel unrolled_elementwise_kernel_for_multi_outputs
    index_elementwise_kernel elementwise_kernel_with_index reduce_kernel multi_tensor_apply_kernel
    _scatter_gather_elementwise_kernel distribution_elementwise_grid_stride_kernel bin_op_kernel
    device_kernel Kernel Kernel2 kentry par_ranged1d_kernel par_ranged2d_kernel par_reduce_kernel
    _kernel_agent kernel_agent static_kernel DeviceReduceByKeyKernel cuda_kernel
    parallel_for_kernel for_each_kernel trampoline_kernel
"""

SHELLS: Final = frozenset(_SHELLS.split())

# Words among the template arguments that are types, spaces and wrappers, never the functor.
_NOISE: Final = """
    int long short char bool float double unsigned signed void const volatile struct class enum
    auto true false size_t half __half __nv_bfloat16 __hip_bfloat16 nv_bfloat16 hip_bfloat16
    bfloat16_t half_t BFloat16 Half complex Float8_e4m3fn Float8_e5m2 int8_t uint8_t int16_t
    uint16_t int32_t uint32_t int64_t uint64_t float2 float4 ul u l at native c10 std detail cuda
    hip torch headeronly templates binary_internal cutlass gemm kernel conv threadblock cute flash
    thrust cub ck_tile ck tensor_operation device GLOBAL__N_1 anonymous namespace unnamed
    unnamed_type cuda_cub __parallel_for __transform __1 cpp internal gpu_kernel_impl
    gpu_kernel_impl_nocast gpu_kernel gpu_index_kernel opmath_gpu_kernel_with_scalars
    BinaryFunctor AUnaryFunctor BUnaryFunctor UnaryFunctor ReduceOp func_wrapper_t
    TensorListMetadata Array array vector OffsetCalculator TrivialOffsetCalculator TensorIterator
    TensorIteratorBase Tensor Scalar OpaqueType lambda instance operator type enable_if value T1
    T2 T3 enable_sm90_or_later enable_sm80_to_sm89 enable_sm100 integral_constant
    _cuda_scatter_gather_internal_kernel Policy800 AgentScanPolicy TensorListScalarListMetadata
    FusedOptimizerTensorListMetadata fbgemm_gpu pytorch_flash cutlass_cudnn_train
    cutlass_cudnn_infer reduction type_specialized_broadcast_kernel_launcher rocprim
    wrapped_config
"""
NOISE: Final = frozenset(_NOISE.split())

_NAMELESS: Final = ("(anonymous namespace)::", "<unnamed>::", "{anonymous}::")
_VERSIONED: Final = re.compile(r"\b(?:CUB|THRUST|ROCPRIM|HIPCUB)_\d+(?:_\w+)?_NS::")
_RETURN: Final = re.compile(r"(?:std::enable_if<.*?>::type|void|int|float|bool|auto) +")
_HEAD: Final = re.compile(r"[^<(\[]*")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_LENGTH: Final = re.compile(r"\d+")
# not a literal (Li128E), a half type (DF16b) or a back reference (S1_)
_INNER_LENGTH: Final = re.compile(r"(?<!\d)(?<!L[a-z])(?<!DF)(?<!S)[1-9]\d*")


def function(name: str) -> str:
    """Give `space::function` of a C++ name, with `<functor>` where the function is only a shell."""
    if name.startswith("_Z"):
        return _mangled(name)
    text = _without_spaces(name[:LOOKED_AT])
    result = _RETURN.match(text)
    start = result.end() if result else 0
    head = _HEAD.match(text, start)
    base = head[0].strip() if head else ""
    if not base:
        return name
    if base.rpartition("::")[2] in SHELLS:
        functor = _functor(text[start + len(base) :])
        if functor:
            return f"{base}<{functor}>"
    return base


def _without_spaces(text: str) -> str:
    """Take off namespaces without a name, and those that hold a library's version."""
    for nameless in _NAMELESS:
        text = text.replace(nameless, "")
    return _VERSIONED.sub("", text) if "_NS::" in text else text


def _functor(arguments: str) -> str:
    for found in _WORD.finditer(arguments):
        if found[0] not in NOISE:
            return found[0]
    return ""


def _mangled(name: str) -> str:
    place = 3 if name.startswith("_ZN") else 2
    parts: list[str] = []
    part, place = _identifier(name, place)
    while part:
        parts.append(part)
        part, place = _identifier(name, place)
    spoken = [p for p in parts if not p.startswith("_GLOBAL__N_")]
    if not spoken:
        return name
    base = "::".join(spoken)
    if spoken[-1] not in SHELLS:
        return base
    functor = _first_inside(name, place)
    return f"{base}<{functor}>" if functor else base


def _identifier(name: str, place: int) -> tuple[str, int]:
    length = _LENGTH.match(name, place)
    if not length:
        return "", place
    end = length.end() + int(length[0])
    return name[length.end() : end], end


def _first_inside(name: str, place: int) -> str:
    for found in _INNER_LENGTH.finditer(name, place, place + LOOKED_AT):
        length = int(found[0])
        word = name[found.end() : found.end() + length]
        if length > 2 and len(word) == length and _WORD.fullmatch(word) and word not in NOISE:
            return word
    return ""
