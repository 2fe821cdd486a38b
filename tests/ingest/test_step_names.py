"""The names that engines give their steps, each form once."""

import pytest

from teller.ingest.step_names import StepName, parse


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "execute_context_2(1024)_generation_30(30)",
            StepName("vllm", "execute_context_generation", None, "mixed", 32, 1054),
        ),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
            StepName("vllm", "execute_context_generation", None, "decode", 32, 32, 55086),
        ),
        (
            "execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)"
            "_generation_0(sq0sk0sqsq0sqsk0)",
            StepName("vllm", "execute_context_generation", None, "prefill", 15, 15360, 15360),
        ),
        (
            "step=99 execute_context_1(93)_generation_3(3)",
            StepName("vllm", "execute_context_generation", 99, "mixed", 4, 96),
        ),
        (
            "execute_context_0(0)_generation_1(1) step=7",
            StepName("vllm", "execute_context_generation", 7, "decode", 1, 1),
        ),
        ("execute_new_3_cached_5", StepName("vllm", "execute_new_cached", None, "mixed", 8)),
        ("execute_model step=40", StepName("vllm", "execute_model", 40)),
        (
            "step[EXTEND bs=15 toks=15360]",
            StepName("sglang", "step[EXTEND]", None, "prefill", 15, 15360),
        ),
        ("step[DECODE bs=8]", StepName("sglang", "step[DECODE]", None, "decode", 8, 8)),
        ("step[TARGET_VERIFY bs=4]", StepName("sglang", "step[TARGET_VERIFY]", None, "decode", 4)),
        ("step[IDLE bs=0]", StepName("sglang", "step[IDLE]", None, "unknown", 0)),
        (
            "run_batch decode bs=48 step=0",
            StepName("sglang", "run_batch decode", 0, "decode", 48, 48),
        ),
        (
            "[Executor] _forward_step 12: 0 ctx reqs, 8 gen reqs",
            StepName("trtllm", "_forward_step", 12, "decode", 8, 8),
        ),
        (
            "[Executor] _forward_step 60000: 2 ctx reqs, 900 ctx tokens, 32 gen reqs",
            StepName("trtllm", "_forward_step", 60000, "mixed", 34, 932),
        ),
        (
            "_forward_step: 1 ctx reqs, 0 gen reqs",
            StepName("trtllm", "_forward_step", None, "prefill", 1),
        ),
        (
            "_forward_step 3 ctx reqs, 4 gen reqs",
            StepName("trtllm", "_forward_step", None, "mixed", 7),
        ),
        ("ProfilerStep#134", StepName("profiler_step", "ProfilerStep", 134)),
        ("Iteration 17", StepName("iteration", "Iteration", 17)),
        ("iter 3", StepName("iteration", "iter", 3)),
        ("decode_step_12", StepName("iteration", "decode_step", 12, "decode")),
    ],
)
def test_a_step_name_says_what_the_engine_wrote(name: str, said: StepName) -> None:
    assert parse(name) == said


@pytest.mark.parametrize(
    "name",
    [
        "capture_32_DECODE",
        "capture_step_3",
        "llm_engine step: get_output",
        "Engine.step",
        "Optimizer.step#SGD.step",
        "gpu_model_runner: forward",
        "_forward_step_inter_pp",
        "vllm/v1/worker/gpu_worker.py(345): execute_model",
        "layers.5.mlp.down_proj",
        "stepping 5 stones",
        "",
    ],
)
def test_other_names_are_no_steps(name: str) -> None:
    assert parse(name) is None
