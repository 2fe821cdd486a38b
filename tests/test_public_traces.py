"""Public traces with annotated steps and no known fault: no voice finds one above `low`.

Launch-bound is apart: small models leave the device idle, and that is what it says. So is
`hta_nccl_metadata`, whose copies do block its device.
"""

from pathlib import Path

import pytest

from teller import pipeline
from teller.graph.keep import rest
from teller.graph.project import project
from teller.graph.workspace import Workspace
from teller.models.listening import Ask
from teller.pipeline import Options, Silent

QUIET = (
    "kineto/hta_compare_base.json.gz", "kineto/hta_compare_test.json.gz",
    "kineto/hta_diff_control.json.gz", "kineto/hta_diff_test.json.gz",
    "kineto/hta_mi250_rocm6.2.json.gz", "kineto/hta_ns_resolution_rank0.json.gz",
    "kineto/hta_sampled_rank0.json.gz", "kineto/kineto_2021_resnet50_w0.pt.trace.json.gz",
    "kineto/tl_mi300_resnet_act_ckpt.json.gz", "kineto_inference/sglang_qwen3_8b_decode.json.gz",
    "kineto_inference/sglang_qwen3_8b_prefilldecode.json.gz",
    "kineto_inference/vllm_decode_full_graph_execution.json.gz",
)  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_nothing_loud_is_said_of_a_public_trace(name: str, shared: Path, tmp_path: Path) -> None:
    place = Workspace(tmp_path, project=project, rest=rest)
    said = pipeline.diagnose([shared / "traces" / name], place, Options(model=Ask()), Silent())
    assert said.runs[0].steps
    loud = [f for f in said.findings if f.severity in ("critical", "high", "medium")]
    assert not [f for f in loud if f.klass != "cpu_launch_bound"]
