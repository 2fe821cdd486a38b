"""Names of real traces become operators that can be compared, each with its family."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest

from teller.ingest.operators import CLASSIFIED, classify, operator_of
from teller.ingest.source import WORDS

GOLDEN = Path(__file__).parents[1] / "data" / "operators.tsv"


def golden() -> list[dict[str, str]]:
    with GOLDEN.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_golden_table_is_as_recorded() -> None:
    rows = golden()
    assert len(rows) > 200
    said = classify(pa.array([row["name"] for row in rows])).to_pylist()
    assert said == [{"operator": row["operator"], "family": row["family"]} for row in rows]


def test_an_operator_is_its_own_operator() -> None:
    rows = [row for row in golden() if row["family"] not in ("step", "graph")]
    again = classify(pa.array([row["operator"] for row in rows])).to_pylist()
    assert again == [{"operator": row["operator"], "family": row["family"]} for row in rows]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cudaLaunchKernel", "cudaLaunchKernel_v7000"),
        ("aten::mul, seq = 46174, op_id = 993406", "aten::mul, op_id = 5"),
        (
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, "
            "std::array<char*, 1ul> >(int, at::native::FillFunctor<long>, std::array<char*, 1ul>)",
            "void at::native::vectorized_elementwise_kernel<(int)2, "
            "at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2, T3)",
        ),
        (
            "void at::native::(anonymous namespace)::indexSelectSmallIndex<float, int>(float)",
            "void at::native::<unnamed>::indexSelectSmallIndex<c10::BFloat16, long>(float)",
        ),
        (
            "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py(345): step",
            "vllm/v1/engine/core.py(377): step",
        ),
        (
            "<built-in method item of Tensor object at 0x7f17c58b6df0>",
            "<built-in method item of Tensor object at 0x78ba5f911d60>",
        ),
        (
            "## Call CompiledFxGraph f4ii27ddivzklxr54hd45chngp247rp2ytmjxpq3f55wet4szuh7 ##",
            "## Call CompiledFxGraph fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##",
        ),
        ("triton_poi_fused_mul_silu_1", "triton_poi_fused_mul_silu_29"),
        ("ProfilerStep#134", "ProfilerStep#9"),
        ("CUDA graph 1 exec 2", "CUDA graph 7 exec 31"),
        ("step=62 execute_context_0(0)_generation_2(2)", "execute_context_1(93)_generation_3(3)"),
    ],
)
def test_the_same_work_has_one_operator(one: str, other: str) -> None:
    assert classify(pa.array([one]))["operator"] == classify(pa.array([other]))["operator"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("layers.5.mlp.down_proj", "layers.6.mlp.down_proj"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "nvjet_tst_64x8_64x16_1x4_h_bz_TNT"),
        ("cudaLaunchKernel", "cudaLaunchKernelExC_v11060"),
        ("step[DECODE bs=8]", "step[EXTEND bs=8 toks=900]"),
        ("kernel_unified_attention_2d", "kernel_unified_attention_3d"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::"
            "BinaryFunctor<float, float, float, binary_internal::MulFunctor<float> > > >",
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::"
            "BinaryFunctor<float, float, float, binary_internal::DivFunctor<float> > > >",
        ),
    ],
)
def test_different_work_stays_apart(one: str, other: str) -> None:
    assert operator_of(one) != operator_of(other)


def test_any_string_array_will_do_and_null_is_other() -> None:
    names = ["aten::mm", None, "aten::mm", ""]
    plain = classify(pa.array(names))
    assert plain.schema == CLASSIFIED
    assert plain["family"].to_pylist() == ["gemm", "other", "gemm", "other"]
    assert classify(pa.array(names).dictionary_encode().cast(WORDS)) == plain
    assert classify(pa.chunked_array([names[:1], names[1:]], pa.string())) == plain
    assert classify(pa.array([], pa.string())).num_rows == 0


def test_every_kernel_of_a_real_decode_step_has_a_family(shared: Path) -> None:
    folder = shared / "cases" / "o04_launch_bound_eager_kineto"
    events = json.loads((folder / "rank0.pt.trace.json").read_text())["traceEvents"]
    kernels = sorted({e["name"] for e in events if e.get("cat") == "kernel"})
    assert len(kernels) == 7
    said = dict(zip(kernels, classify(pa.array(kernels))["family"].to_pylist(), strict=True))
    assert sorted(said.values()) == [
        "activation",
        "attention",
        "elementwise",
        "gemm",
        "gemm",
        "kv_cache",
        "norm",
    ]
