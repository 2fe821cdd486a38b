"""Every cause changes what it must and nothing else, measured against a replay without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from teller.graph.classes import classes
from teller.lab.simulator import causes, draw
from teller.lab.simulator.causes import Spec
from teller.lab.simulator.draw import DISAGGREGATED, EXPERTS, Layout, Wanted
from teller.lab.simulator.simulate import Order, Simulated, simulate
from teller.lab.truth import Episode

STEPS = 30
STRONG = {  # a severity that shows in a run of few steps
    "slow_path": 15.0, "wrong_nic": 8.0, "rank_asymmetric_warmup": 900.0,
    "prefill_interference": 8.0, "batch_imbalance": 0.95, "packet_loss": 0.5, "congestion": 12.0,
    "late_rank": 8.0,
    "rotating_straggler": 6.0, "slow_rank": 2.0, "gpu_throttle": 3.0, "gpu_memory_fault": 1.8,
    "gpu_shared": 2.5, "pcie_degraded": 16.0, "slow_operator": 3.0, "hidden_sync": 60.0,
    "device_allocation": 9.0, "blocking_copy": 9.0, "host_pause": 300.0, "gil_contention": 40.0,
    "host_contention": 5.0, "cpu_quota": 0.7, "host_misplaced": 3.5, "cpu_launch_bound": 4.0,
    "scheduler_overhead": 40.0, "compile_in_serving": 3000.0, "kv_preemption": 0.2,
    "admission_blocked": 3.0, "tokenizer_stall": 40.0, "log_storm": 60.0, "storage_stall": 900.0,
    "kv_transfer_slow": 80.0, "expert_imbalance": 4.0, "pipeline_imbalance": 1.8,
    "load_growth": 6.0,
}  # fmt: skip
QUEUE = set(causes.QUEUE)
HANGS = {"collective_mismatch", "collective_missing_rank", "worker_crash"}
ENGINE = {"scheduler_overhead", "log_storm", "storage_stall"}
SHORT = {
    "rank_asymmetric_warmup",
    "host_pause",
    "compile_in_serving",
    "storage_stall",
    "isolated_spike",
} | HANGS
EAGER = {"hidden_sync", "device_allocation", "blocking_copy"}
NETWORK = {"slow_path", "transport_fallback", "packet_loss", "congestion", "gdr_disabled",
           "comm_config", "wrong_nic", "p2p_blocked", "custom_allreduce_off"}  # fmt: skip
DEVICE = {"slow_rank", "gpu_throttle", "gpu_shared", "expert_imbalance", "pipeline_imbalance"}
HOST = {
    "rank_asymmetric_warmup", "late_rank", "rotating_straggler", "host_pause", "gil_contention",
    "host_contention", "cpu_quota", "host_misplaced", "cpu_launch_bound", "compile_in_serving",
}  # fmt: skip
COLLECTIVE = ("nccl", "reduce_1stage", "allreduce_fusion", "deep_ep")


@dataclass(frozen=True)
class Case:
    """A run with one strong cause, for as long as it can act."""

    spec: Spec
    run: Simulated
    episode: Episode


def wanted_for(spec: Spec) -> Wanted:
    """Give a small scene that has what a cause needs, and in which nothing hides it."""
    layout, model = Layout(4), "qwen3_8b"
    mode = "eager" if spec.kind in HOST | EAGER else "graph"
    if "hosts" in spec.needs or "library" in spec.needs:
        layout = Layout(4, hosts=2)
    if "pipeline" in spec.needs:
        layout = Layout(2, 2)
    if "experts" in spec.needs:
        layout, model = EXPERTS[2], "gpt_oss_20b"
    if "disaggregated" in spec.needs:
        layout = DISAGGREGATED[1]
    engine = "sglang" if spec.kind == "custom_allreduce_off" else "vllm"
    return Wanted(engine, model, "h100", mode, layout, STEPS, offload="offload" in spec.needs)


@cache
def case(kind: str) -> Case:
    """Simulate a cause once for all tests; the seed is the first in which it acts long enough."""
    spec, wanted = causes.spec(kind), wanted_for(causes.spec(kind))
    for seed in range(100, 160):
        scene = draw.scene(seed, wanted)
        drawn = causes.drawn(kind, scene, STEPS, 0, np.random.default_rng([seed, 5, 0]))
        if causes.fits(spec, scene) and (kind in SHORT or drawn.last - drawn.first > 8):
            run = simulate(Order(seed, (kind,), wanted, STRONG.get(kind)))
            found = Case(spec, run, run.labels[0].episode())
            if kind not in QUEUE or some_request_comes_meanwhile(found):
                return found
    raise AssertionError(f"no scene for {kind}")


def some_request_comes_meanwhile(found: Case) -> bool:
    """Tell whether a request arrives while a cause acts, early enough to be served."""
    window, happened = found.episode.intended, found.run.happened
    end_ns = min(window.end_ns, happened.end_ns - 100_000_000)
    return any(window.start_ns < r.arrival_ns < end_ns for r in happened.requests)


def names_of(episode: Episode) -> Iterator[str]:
    """Give the names of the gold operators."""
    return (o.operator for o in episode.operators)


KINDS = sorted(causes.specs())


def test_every_cause_is_of_a_class_and_every_kind_of_fault_is_met() -> None:
    assert {s.class_ for s in causes.specs().values()} <= set(classes())
    told = {f for c in classes().values() for f in c.faults if c.verdict == "fault"}
    made = {s.id for s in causes.specs().values()} - {""}
    assert told <= made


@pytest.mark.parametrize("kind", sorted(set(KINDS) - QUEUE - {"load_growth", "verbose_log"}))
def test_a_strong_cause_is_felt_and_keeps_its_class(kind: str) -> None:
    found = case(kind).episode
    assert found.measured["largest_share"] >= 0.03
    assert found.class_ == case(kind).spec.class_


@pytest.mark.parametrize("kind", KINDS)
def test_steps_before_a_cause_are_as_in_the_replay(kind: str) -> None:
    found = case(kind)
    cause = found.run.causes[0]
    assert not [s for s in found.episode.steps if s.step_index < cause.first]


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_what_is_slow_on_the_network_is_collectives_alone(kind: str) -> None:
    names = list(names_of(case(kind).episode))
    assert names
    assert all(any(c in n for c in COLLECTIVE) or n == "cudaLaunchKernelExC" for n in names)


@pytest.mark.parametrize("kind", sorted(DEVICE))
def test_a_slow_device_has_slow_kernels_and_no_slow_host_and_no_slow_collective(kind: str) -> None:
    names = list(names_of(case(kind).episode))
    assert names
    assert not [n for n in names if n.startswith(("cuda", "aten::", "gpu_model_runner"))]
    assert not [n for n in names if any(c in n for c in COLLECTIVE)]


@pytest.mark.parametrize("kind", sorted(HOST))
def test_a_slow_host_has_no_slow_kernel(kind: str) -> None:
    names = list(names_of(case(kind).episode))
    assert names
    kernels = ("void ", "nvjet", "sm90", "triton_red", "nccl", "kernel_", "Memcpy")
    assert not [n for n in names if n.startswith(kernels)]


@pytest.mark.parametrize("kind", sorted(ENGINE | QUEUE | {"load_growth", "verbose_log"}))
def test_what_acts_on_the_engine_or_the_queue_blames_no_operator(kind: str) -> None:
    assert not case(kind).episode.operators


RANK = ("late_rank", "slow_rank", "gpu_throttle", "gpu_shared", "host_pause", "gil_contention",
        "host_contention", "cpu_quota", "expert_imbalance")  # fmt: skip


@pytest.mark.parametrize("kind", RANK)
def test_victims_wait_but_own_nothing(kind: str) -> None:
    found = case(kind)
    struck = found.run.causes[0].rank
    assert {s.rank for s in found.episode.steps if s.own} == {struck}
    assert {o.rank for o in found.episode.operators} == {struck}
    victims = [s for s in found.episode.steps if s.rank != struck and s.share > 0.03]
    assert victims, "the others wait for it"
    assert not any(s.own for s in victims)


@pytest.mark.parametrize("kind", RANK)
def test_the_culprit_has_the_shortest_collectives(kind: str) -> None:
    """By mechanism the time is on the victims: their collectives wait for the late rank."""
    found = case(kind)
    struck, happened = found.run.causes[0].rank, found.run.happened
    steps = {s.step_index for s in found.episode.steps if s.own and s.share > 0.05}
    inside = [
        float((j.end_ns - j.arrival_ns)[np.isin(j.step, list(steps)) & (j.end_ns > 0)].sum())
        for j in happened.joins
    ]
    assert int(np.argmin(inside)) == struck


@pytest.mark.parametrize("kind", sorted(HANGS))
def test_a_hang_leaves_the_last_step_open_and_earlier_ones_whole(kind: str) -> None:
    happened = case(kind).run.happened
    for steps in happened.steps:
        assert (steps.end_ns[:-1] > 0).all()
    assert any(s.end_ns[-1] < 0 for s in happened.steps)


def test_a_missing_rank_is_the_one_that_has_not_entered() -> None:
    found = case("collective_missing_rank")
    entered = [int((j.arrival_ns >= 0).sum()) for j in found.run.happened.joins]
    assert int(np.argmin(entered)) == found.run.causes[0].rank
    assert len(set(entered)) == 2


def test_a_smaller_cache_preempts_and_a_giant_request_blocks() -> None:
    assert any(r.preemptions for r in case("kv_preemption").run.happened.requests)
    gauges = case("admission_blocked").run.happened.gauges
    assert gauges.columns["engine 0 waiting"].max() >= 1


def test_a_replica_that_gets_most_requests_runs_larger_batches() -> None:
    found = case("batch_imbalance")
    steps = found.run.happened.steps
    cause = found.run.causes[0]
    loads = [
        float(s.generations[(s.index >= cause.first) & (s.index <= cause.last)].sum())
        for s in steps
    ]
    assert int(np.argmax(loads)) in found.episode.culprit.ranks


def test_requests_come_late_out_of_a_slow_tokenizer() -> None:
    requests = case("tokenizer_stall").run.happened.requests
    assert max(r.queued_ns - r.arrival_ns for r in requests if r.queued_ns >= 0) > 20e6


def test_a_throttled_device_shows_its_clock_and_others_do_not() -> None:
    found = case("gpu_throttle")
    struck, gauges = found.run.causes[0].rank, found.run.happened.gauges
    lowest = [gauges.columns[f"gpu {r} sm_clock_mhz"].min() for r in range(4)]
    assert lowest[struck] < 0.5 * min(v for r, v in enumerate(lowest) if r != struck)


def test_a_slow_state_without_a_sign_shows_no_clock() -> None:
    gauges = case("slow_rank").run.happened.gauges
    clocks = [v for k, v in gauges.columns.items() if k.endswith("sm_clock_mhz")]
    assert np.min(clocks) > 0.9 * np.max(clocks)


def test_the_same_order_gives_the_same_run() -> None:
    order = Order(5, ("gil_contention",), Wanted(steps=12, largest=4))
    one, two = simulate(order), simulate(order)
    assert one.happened.names == two.happened.names
    for a, b in zip(one.happened.device, two.happened.device, strict=True):
        np.testing.assert_array_equal(a.start_ns, b.start_ns)
    assert one.labels[0].episode() == two.labels[0].episode()


def test_a_weak_cause_is_said_to_have_no_effect() -> None:
    wanted = wanted_for(causes.spec("slow_rank"))
    label = simulate(Order(101, ("slow_rank",), wanted, 1.001)).labels[0].episode()
    assert (label.class_, label.benign) == ("no_effect", True)
    assert label.extra["intended_class"] == "slow_rank"
