"""Names of `Sample` nodes: what readers may write and what rules and people may ask for.

A sample is about a rank, host, device or link (`ABOUT`); its `value` is a number in the unit that
its name says, its `text` what has no number. Metrics that are not here stand as `prom:METRIC`.
"""

from typing import Final

# fmt: off
SAMPLES: Final[dict[str, str]] = {
    # engines: one sample a statistics line or scrape; text: the engine ("engine 1"), "" if one
    "engine.name": "text: vllm, sglang, trtllm, triton",
    "engine.version": "text",
    "engine.model": "text",
    "engine.option": "text NAME=VALUE: an option that it was started with; secrets left out",
    "engine.running": "requests that run",
    "engine.waiting": "requests that wait",
    "engine.queued_tokens": "prompt tokens that wait",
    "engine.swapped": "requests swapped out",
    "engine.kv_usage_ratio": "share of the KV cache in use, 0 to 1",
    "engine.prefix_hit_ratio": "share of prefix cache hits, 0 to 1",
    "engine.prompt_tokens_per_s": "prompt tokens a second",
    "engine.generation_tokens_per_s": "generated tokens a second",
    "engine.preemptions_total": "counter: preemptions or retractions since start",
    "engine.preemptions": "preemptions or retractions in one line's interval",
    "engine.prompt_tokens_total": "counter: prompt tokens since start",
    "engine.generation_tokens_total": "counter: generated tokens since start",
    "engine.requests_total": "counter: finished requests since start",
    "engine.cuda_graph": "1 the interval's steps replay graphs, 0 they do not; text: the phase",
    "engine.batch_size": "requests in the step or interval; text: prefill or decode",
    "engine.step_tokens": "tokens computed in the step; text: prefill or decode",
    "engine.cached_tokens": "prompt tokens found in the prefix cache",
    "engine.accept_ratio": "speculative decoding: accepted share, 0 to 1",
    "engine.kv_tokens": "tokens that the KV cache holds",
    "engine.max_model_tokens": "longest sequence that the engine admits, tokens",
    "engine.max_concurrency": "full-length requests that fit the KV cache at once",
    "engine.loading_ns": "time that loading the weights took",
    "engine.compile_ns": "time that a compilation took; text: of what",
    "engine.capture_ns": "time that capturing graphs took",
    "engine.init_ns": "time that start-up took",
    "engine.ready": "the engine said that it serves",
    "engine.restart": "the engine began to start",
    "step.host_ns": "host time of one iteration; text: its number",
    "step.device_ns": "device time of one iteration; text: its number",
    "kv.transfer_ns": "time of one KV transfer; text: request or peer",
    "kv.transfer_failed": "a KV transfer failed; text: request or peer",
    "moe.expert_tokens": "tokens that one rank's experts got; text: layer or interval",
    "gc.pause_ns": "pause of a garbage collection; text: generation",
    # communication library; text of edges: "SRC->DST TRANSPORT"
    "nccl.version": "text",
    "nccl.env": "text NAME=VALUE: a variable that is in effect",
    "nccl.network": "text: the network in use: IB, Socket, a plug-in's name",
    "nccl.nic": "text: a network device in use, as in mlx5_0:1/RoCE; value: its index",
    "nccl.nic_open_failed": "a network device could not be opened; text: which, and the words",
    "nccl.gdr": "1 GPUDirect RDMA is in use on the process, 0 it is not; text: the words",
    "nccl.gdr_disabled": "GPUDirect RDMA is off for a network device; text: which",
    "nccl.p2p_disabled": "peer-to-peer is off or refused; text: the words",
    "nccl.channels": "collective channels of a communicator; text: comm",
    "nccl.edge": "a channel's edge; value: channel; text SRC->DST TRANSPORT in global ranks",
    "nccl.nodes": "nodes of a communicator; text: comm",
    "nccl.init_ns": "time that making a communicator took; text: comm",
    "nccl.completion_error": "a network operation failed; value: status; text: device and addresses",
    "nccl.error": "text: another failure line",
    "nccl.async_event": "an asynchronous event of a network device; text",
    "nccl.algorithm": "text ALGO/PROTO for a size; value: bytes",
    "nccl.busbw_bytes_per_s": "bus bandwidth that a benchmark or record states; text: operation",
    "nccl.ras": "text: a line of the RAS subsystem",
    # watchdog of PyTorch's process groups
    "watchdog.timeout": "value: sequence number; text: operation, sizes, group",
    "watchdog.elements": "input elements of a collective that timed out; text: operation",
    "watchdog.last_enqueued": "value: sequence number; text: group",
    "watchdog.last_completed": "value: sequence number; text: group",
    "watchdog.stuck": "the watchdog itself made no progress, ns",
    # devices
    "gpu.sm_clock_mhz": "clock of the multiprocessors",
    "gpu.sm_clock_max_mhz": "highest clock of the multiprocessors",
    "gpu.mem_clock_mhz": "clock of the memory",
    "gpu.power_w": "power drawn",
    "gpu.power_limit_w": "power limit",
    "gpu.temperature_c": "temperature",
    "gpu.utilisation_ratio": "share of time with any kernel, 0 to 1",
    "gpu.memory_used_bytes": "memory in use",
    "gpu.throttle_reasons": "bit mask as NVML gives it",
    "gpu.ecc_errors": "counter of ECC errors; text: corrected or uncorrected",
    "gpu.remapped_rows": "counter of remapped rows",
    "gpu.pcie_gen": "PCIe generation in use",
    "gpu.pcie_gen_max": "PCIe generation that it could use",
    "gpu.pcie_width": "PCIe lanes in use",
    "gpu.pcie_width_max": "PCIe lanes that it could use",
    "gpu.processes": "processes that use it; text: their names",
    "gpu.xid": "Xid number; text: the line",
    "gpu.lost": "the device fell off the bus; text",
    # hosts
    "host.module": "a kernel module is loaded; text: its name",
    "host.modules_listed": "a list of modules was read: those not in it are not loaded",
    "host.gid": "value: index; text DEVICE PORT GID IPV4 VERSION NETDEV",
    "host.nic_link": "text: state of a network link",
    "host.topology": "text A B PATH: how two devices are joined (PIX, NODE, SYS, NV18 …)",
    "host.affinity": "text: CPUs that the process or device may use",
    "host.numa_node": "NUMA node of a device or process",
    "host.acs": "1 ACS redirects peer-to-peer on a bridge; text: which",
    "host.iommu": "text: state of the IOMMU",
    "host.cpus": "CPUs that may be used",
    "host.load_ratio": "runnable tasks for each CPU",
    "host.run_queue_ns": "time that tasks waited for a CPU in the interval",
    "host.steal_ratio": "share of time taken by the hypervisor",
    "host.cpu_usage_ratio": "share of CPU time in use, 0 to 1",
    "host.cpu_clock_mhz": "clock of the CPUs",
    "host.throttled_ns": "counter: time that the cgroup's quota held its tasks back",
    "host.throttled_periods": "counter: periods with throttling",
    "host.periods": "counter: periods of the quota",
    "host.cpu_quota": "CPUs that the quota allows",
    "host.oom_kill": "the kernel ended a process; text",
    "host.segfault": "a process fell; text",
    "host.io_wait_ratio": "share of time waiting for storage",
    "host.disk_busy_ratio": "share of time that the disk was busy",
    "host.disk_read_bytes_per_s": "bytes read a second",
    "host.disk_written_bytes_per_s": "bytes written a second",
    # processes of a service; rank or process says which
    "process.cpu_ns": "counter: CPU time used",
    "process.wait_ns": "counter: time ready to run without a CPU",
    "process.involuntary_switches": "counter",
    "process.threads": "threads",
    "process.died": "a process of the service ended; text",
    # network
    "net.retransmits": "counter of retransmissions; text: device",
    "net.drops": "counter of dropped packets; text: device",
    "net.pause_frames": "counter of priority-flow-control pauses; text: device",
    "net.received_bytes_per_s": "bytes received a second; text: device",
    "net.sent_bytes_per_s": "bytes sent a second; text: device",
    "net.link_rate_bytes_per_s": "rate of a network link; text: device",
    # logs as a whole
    "log.lines": "messages in a second of a log; text: process",
    "log.unread": "lines that look like records and could not be read; text: what they begin with",
    "log.repeated": "value: how often; text: the line that a collector folded",
    # notes that a person wrote beside the data
    "note.usual": "a figure of the healthy state; text: its name",
    "note.now": "the same figure now; text: its name",
}
# fmt: on
PROMETHEUS: Final = "prom:"


def known(name: str) -> bool:
    """Tell whether a sample may have this name."""
    return name in SAMPLES or name.startswith((PROMETHEUS, *TRACE))


# Named by ingest itself, of captures: teller.ingest.facts.
TRACE: Final = ("capture.", "pace.", "compare.", "silence")
