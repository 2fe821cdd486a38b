"""The readers, in the order in which they are asked."""

from typing import Final

from teller.ingest.readers import (
    client,
    client_results,
    comm_records,
    flight_recorder,
    gpu_csv,
    gpu_dmon,
    host_facts,
    host_metrics,
    kineto,
    log,
    nccl_inspector,
    nccl_profiler,
    nccl_topology,
    note,
    nsys,
    nsys_dir,
    nsys_recipe,
    otlp,
    prometheus,
    trtllm_stats,
)
from teller.ingest.source import Reader

# What is surest of its content comes first; a text log takes what no other claims.
READERS: Final[tuple[Reader, ...]] = (
    nsys,
    nsys_recipe,
    nsys_dir,
    flight_recorder,
    nccl_inspector,
    nccl_profiler,
    comm_records,
    host_metrics,
    trtllm_stats,
    client_results,
    otlp,
    note,
    kineto,
    nccl_topology,
    prometheus,
    gpu_csv,
    gpu_dmon,
    host_facts,
    client,
    log,
)
