"""What metrics of engines, devices and hosts mean: their names in the vocabulary, and units."""

from dataclasses import dataclass
from typing import Final

DEVICE: Final = "device"  # `gpu` says which


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sample's name, what to multiply by, and where its text is from.

    `text` names labels: their values are the text; of `engine` comes "engine 0". `fixed` is said
    as it is. `only` is a label and the value that it must have.
    """

    name: str
    factor: float = 1.0
    text: tuple[str, ...] = ()
    fixed: str = ""
    only: tuple[str, str] | None = None
    about: str = ""


ENGINE_LABELS: Final = ("engine", "engine_index", "dp_rank")
_MIB: Final = 1048576.0
_S: Final = 1e9
_POD: Final = ("pod", "container")


def _engine(name: str, factor: float = 1.0, only: tuple[str, str] | None = None) -> Meaning:
    return Meaning(name, factor, ENGINE_LABELS, only=only)


def _gpu(name: str, factor: float = 1.0, fixed: str = "") -> Meaning:
    return Meaning(name, factor, fixed=fixed, about=DEVICE)


# fmt: off
# counters stand without their ending _total; more than one meaning of a metric is told by a label
MEANINGS: Final[dict[str, tuple[Meaning, ...]]] = {name: (meaning,) for name, meaning in {
    "vllm:num_requests_running": _engine("engine.running"),
    "vllm:num_requests_waiting": _engine("engine.waiting"),
    "vllm:num_requests_swapped": _engine("engine.swapped"),
    "vllm:gpu_cache_usage_perc": _engine("engine.kv_usage_ratio"),
    "vllm:kv_cache_usage_perc": _engine("engine.kv_usage_ratio"),
    "vllm:gpu_prefix_cache_hit_rate": _engine("engine.prefix_hit_ratio"),
    "vllm:num_preemptions": _engine("engine.preemptions_total"),
    "vllm:prompt_tokens": _engine("engine.prompt_tokens_total"),
    "vllm:generation_tokens": _engine("engine.generation_tokens_total"),
    "vllm:request_success": _engine("engine.requests_total"),
    "vllm:avg_prompt_throughput_toks_per_s": _engine("engine.prompt_tokens_per_s"),
    "vllm:avg_generation_throughput_toks_per_s": _engine("engine.generation_tokens_per_s"),
    "vllm:spec_decode_draft_acceptance_rate": _engine("engine.accept_ratio"),
    "sglang:num_running_reqs": _engine("engine.running"),
    "sglang:num_queue_reqs": _engine("engine.waiting"),
    "sglang:token_usage": _engine("engine.kv_usage_ratio"),
    "sglang:cache_hit_rate": _engine("engine.prefix_hit_ratio"),
    "sglang:gen_throughput": _engine("engine.generation_tokens_per_s"),
    "sglang:prompt_tokens": _engine("engine.prompt_tokens_total"),
    "sglang:generation_tokens": _engine("engine.generation_tokens_total"),
    "sglang:num_requests": _engine("engine.requests_total"),
    "sglang:num_retracted_reqs": _engine("engine.preemptions"),
    "sglang:num_retracted_requests": _engine("engine.preemptions_total"),
    "sglang:spec_accept_rate": _engine("engine.accept_ratio"),
    "sglang:max_total_num_tokens": _engine("engine.kv_tokens"),
    "sglang:is_cuda_graph": _engine("engine.cuda_graph"),
    "sglang:engine_startup_time": _engine("engine.init_ns", _S),
    "sglang:engine_load_weights_time": _engine("engine.loading_ns", _S),
    "trtllm_request_success": _engine("engine.requests_total"),
    "trtllm_kv_cache_hit_rate": _engine("engine.prefix_hit_ratio"),
    "trtllm_kv_cache_utilization": _engine("engine.kv_usage_ratio"),
    "nv_inference_request_success": Meaning("engine.requests_total", text=("model",)),
    "nv_inference_pending_request_count": Meaning("engine.waiting", text=("model",)),
    "nv_gpu_utilization": Meaning("gpu.utilisation_ratio", text=("gpu_uuid",)),
    "nv_gpu_power_usage": Meaning("gpu.power_w", text=("gpu_uuid",)),
    "nv_gpu_power_limit": Meaning("gpu.power_limit_w", text=("gpu_uuid",)),
    "nv_gpu_memory_used_bytes": Meaning("gpu.memory_used_bytes", text=("gpu_uuid",)),
    "nv_cpu_utilization": Meaning("host.cpu_usage_ratio"),
    "DCGM_FI_DEV_SM_CLOCK": _gpu("gpu.sm_clock_mhz"),
    "DCGM_FI_DEV_MAX_SM_CLOCK": _gpu("gpu.sm_clock_max_mhz"),
    "DCGM_FI_DEV_MEM_CLOCK": _gpu("gpu.mem_clock_mhz"),
    "DCGM_FI_DEV_POWER_USAGE": _gpu("gpu.power_w"),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": _gpu("gpu.power_limit_w"),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": _gpu("gpu.power_limit_w"),
    "DCGM_FI_DEV_GPU_TEMP": _gpu("gpu.temperature_c"),
    "DCGM_FI_DEV_GPU_UTIL": _gpu("gpu.utilisation_ratio", 0.01),
    "DCGM_FI_DEV_FB_USED": _gpu("gpu.memory_used_bytes", _MIB),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": _gpu("gpu.throttle_reasons"),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": _gpu("gpu.throttle_reasons"),
    "DCGM_FI_DEV_ECC_SBE_VOL": _gpu("gpu.ecc_errors", fixed="corrected"),
    "DCGM_FI_DEV_ECC_DBE_VOL": _gpu("gpu.ecc_errors", fixed="uncorrected"),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": _gpu("gpu.remapped_rows", fixed="corrected"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": _gpu("gpu.remapped_rows", fixed="uncorrected"),
    "DCGM_FI_DEV_PCIE_LINK_GEN": _gpu("gpu.pcie_gen"),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": _gpu("gpu.pcie_gen_max"),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": _gpu("gpu.pcie_width"),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": _gpu("gpu.pcie_width_max"),
    "DCGM_FI_DEV_XID_ERRORS": _gpu("gpu.xid"),
    "node_netstat_Tcp_RetransSegs": Meaning("net.retransmits"),
    "node_network_receive_drop": Meaning("net.drops", text=("device",)),
    "node_network_transmit_drop": Meaning("net.drops", text=("device",)),
    "node_network_speed_bytes": Meaning("net.link_rate_bytes_per_s", text=("device",)),
    "node_infiniband_rate_bytes_per_second":
        Meaning("net.link_rate_bytes_per_s", text=("device", "port")),
    "node_cpu_frequency_hertz": Meaning("host.cpu_clock_mhz", 1e-6, ("cpu",)),
    "node_cpu_scaling_frequency_hertz": Meaning("host.cpu_clock_mhz", 1e-6, ("cpu",)),
    "container_cpu_cfs_throttled_seconds": Meaning("host.throttled_ns", _S, _POD),
    "container_cpu_cfs_throttled_periods": Meaning("host.throttled_periods", 1, _POD),
    "container_cpu_cfs_periods": Meaning("host.periods", 1, _POD),
    "process_cpu_seconds": Meaning("process.cpu_ns", _S),
}.items()} | {
    "nv_trt_llm_request_metrics": (
        _engine("engine.running", only=("request_type", "scheduled")),
        _engine("engine.waiting", only=("request_type", "waiting")),
    ),
    "nv_trt_llm_kv_cache_block_metrics": (
        _engine("engine.kv_usage_ratio", only=("kv_cache_block_type", "fraction")),
    ),
    "nv_trt_llm_inflight_batcher_metrics": (
        Meaning("engine.batch_size", fixed="decode",
                only=("inflight_batcher_specific_metric", "generation_requests")),
        Meaning("engine.step_tokens", fixed="prefill",
                only=("inflight_batcher_specific_metric", "total_context_tokens")),
    ),
}
# fmt: on

# of these, series that differ only in labels that the text leaves out are one figure
SUMMED: Final = ("engine.requests_total", "net.drops")

ENGINES: Final = {"vllm": "vllm:", "sglang": "sglang:", "trtllm": "trtllm_", "triton": "nv_"}
FAMILIES: Final = (*ENGINES.values(), "ray_vllm", "DCGM_FI_", "node_", "container_", "process_")
