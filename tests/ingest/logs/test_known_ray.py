"""What lines of Ray mean."""

from collections.abc import Callable

import pyarrow as pa

from teller.ingest.logs.known import ray

Lines = Callable[..., pa.Table]


def test_dead_workers_and_lost_nodes_with_their_addresses(lines: Lines) -> None:
    texts = [
        "A worker died or was killed while executing a task by an unexpected system error. To "
        "troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffff Worker ID: "
        "0a1b Node ID: cafe Worker IP address: 10.0.0.7 Worker port: 10002 Worker PID: 4242 Worker "
        "exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection "
        "error code 2. End of file.",
        "node_manager.cc:3049: 10 Workers (tasks / actors) killed due to memory pressure (OOM), 0 "
        "Workers crashed due to other reasons at node (ID: e5d9, IP: 10.0.62.231) over the last "
        "time period. To see more",
        "The node with node id: cafe and address: 10.0.0.3 and node name: 10.0.0.3 has been marked "
        "dead because the detector has missed too many heartbeats from it.",
        "The actor died unexpectedly before finishing this task.\n\tclass_name: Worker",
    ]
    assert all(any(mark in text for mark in ray.MARKS) for text in texts)
    rows = ray.knowing().learn(lines(texts)).learned.samples.to_pylist()
    found = {(row["name"], row["host"], row["pid"], row["value"]) for row in rows}
    assert found == {
        ("process.died", "10.0.0.7", 4242, None),
        ("process.died", "10.0.62.231", None, 10),
        ("host.lost", "10.0.0.3", None, None),
        ("process.died", None, None, None),
    }
    assert rows[0]["text"].startswith("SYSTEM_ERROR Worker exit detail")
