"""Options that an engine prints at its start: only names on a list are read, so no secret is."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from teller.ingest.logs.knowledge import samples
from teller.ingest.logs.meaning import labelled, whole

_NAMES: Final = [
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "enable_expert_parallel",
    "expert_parallel_size",
    "distributed_executor_backend",
    "nnodes",
    "node_rank",
    "tp_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "enable_dp_attention",
    "attn_cp_size",
    "moe_dense_tp_size",
    "base_gpu_id",
    "enforce_eager",
    "disable_cuda_graph",
    "disable_prefill_cuda_graph",
    "disable_decode_cuda_graph",
    "cuda_graph_max_bs",
    "cuda_graph_max_bs_decode",
    "cuda_graph_bs",
    "cudagraph_mode",
    "enable_torch_compile",
    "max_seq_len",
    "max_model_len",
    "context_length",
    "max_num_seqs",
    "max_running_requests",
    "max_num_batched_tokens",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "max_total_tokens",
    "num_continuous_decode_steps",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "disable_radix_cache",
    "enable_hierarchical_cache",
    "gpu_memory_utilization",
    "mem_fraction_static",
    "swap_space",
    "cpu_offload_gb",
    "block_size",
    "page_size",
    "num_gpu_blocks_override",
    "kv_cache_dtype",
    "dtype",
    "quantization",
    "load_format",
    "schedule_policy",
    "schedule_conservativeness",
    "scheduling_policy",
    "async_scheduling",
    "disable_overlap_schedule",
    "disable_custom_all_reduce",
    "enable_eplb",
    "enable_dbo",
    "enable_two_batch_overlap",
    "moe_a2a_backend",
    "moe_runner_backend",
    "all2all_backend",
    "deepep_mode",
    "attention_backend",
    "sampling_backend",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_num_draft_tokens",
    "num_speculative_tokens",
    "disaggregation_mode",
    "disaggregation_transfer_backend",
    "kv_connector",
    "kv_role",
    "watchdog_timeout",
    "disable_log_stats",
    "disable_log_requests",
    "log_requests",
    "decode_log_interval",
    "enable_lora",
    "numa_node",
    "gc_threshold",
    "sleep_on_idle",
    "stream_interval",
    "enable_nccl_nvls",
]


def options(lines: pa.Table) -> list[pa.Table]:
    """Give a sample for each option of these few lines: NAME=VALUE."""
    made = []
    text = whole(lines["text"])
    for name in _NAMES:
        found = pc.extract_regex(text, _pattern(name))
        fits = found.is_valid()
        value = pc.struct_field(found.filter(fits), "value")
        if len(value):
            rows = lines.filter(fits)
            made.append(samples("engine.option", rows, text=labelled(name + "={}", value)))
    return made


def option(lines: pa.Table, name: str) -> pa.Array:
    """Give one option of these lines as text, null where it is not told."""
    return pc.struct_field(pc.extract_regex(whole(lines["text"]), _pattern(name)), "value")


def _pattern(name: str) -> str:
    """Read NAME=VALUE, 'NAME': VALUE and --NAME VALUE; a value holds no blank and no address."""
    spelled = name.replace("_", "[_-]")
    return (
        rf"(?:^|[\s({{,])(?:--)?['\"]?{spelled}['\"]?(?:=|:\s?|\s)\s*"
        r"['\"<]?(?P<value>[\w.+/-]+)['\"]?(?:[\s,)}\]:]|$)"
    )
