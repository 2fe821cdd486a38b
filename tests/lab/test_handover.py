"""Prefill apart from decode: a cache goes over a link before its request is decoded."""

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from teller.ingest.discover import head_of, reader_for
from teller.lab.simulator import causes, draw
from teller.lab.simulator.draw import DISAGGREGATED, Layout, Wanted
from teller.lab.simulator.handover import Handover, Instance, cache_bytes, pairs
from teller.lab.simulator.happened import HostKind
from teller.lab.simulator.produce import name_of
from teller.lab.simulator.recording import client, engine_log
from teller.lab.simulator.recording.plan import plain
from teller.lab.simulator.simulate import Order, Simulated, simulate
from tests.lab.small import S

TWO_LINKS = DISAGGREGATED[5]  # one host prefills, two decode
WANTED = Wanted("vllm", "qwen3_8b", "h100", "graph", TWO_LINKS, 60)
SEED = 54


@cache
def run(engine: str = "vllm") -> Simulated:
    wanted = replace(WANTED, engine=engine)
    return simulate(Order(SEED, ("kv_transfer_slow",), wanted, 60.0))


def test_a_request_is_decoded_once_its_cache_is_there() -> None:
    happened = run().happened
    requests = {r.name: r for r in happened.requests}
    assert len(happened.transfers) > 10
    for one in happened.transfers:
        asked = requests[one.request]
        assert asked.arrival_ns <= asked.scheduled_ns < one.ready_ns <= one.start_ns < one.end_ns
        assert asked.first_token_ns < 0 or asked.first_token_ns > one.end_ns
        assert asked.replica == one.target >= happened.scene.prefill > one.source


def test_instances_that_prefill_decode_nothing_and_the_others_prefill_nothing() -> None:
    happened = run().happened
    for place, steps in zip(happened.scene.places, happened.steps, strict=True):
        decodes = place.dp >= happened.scene.prefill
        assert int(steps.generations.sum() > 0) == decodes
        assert int(steps.contexts.sum() > 0) != decodes


def test_between_two_replicas_one_cache_passes_after_the_other() -> None:
    passed = defaultdict(list)
    for one in run().happened.transfers:
        passed[one.source, one.target].append((one.start_ns, one.end_ns))
    assert len(passed) == 2
    for times in passed.values():
        assert all(before[1] <= then[0] for before, then in pairwise(times))


def test_a_slow_link_delays_its_own_caches_and_no_step() -> None:
    found, scene = run(), run().happened.scene
    episode, cause = found.labels[0].episode(), found.causes[0]
    struck = {p.dp for p in scene.places if p.host == cause.host}
    late = {t.target for t in found.happened.transfers if t.late_ns}
    assert late == struck
    assert not episode.steps
    assert set(episode.extra["requests_ns"]) == {
        t.request for t in found.happened.transfers if t.late_ns
    }
    names = (scene.hosts[cause.peer].name, scene.hosts[cause.host].name)
    assert episode.culprit.links == (names,)
    first = min(t.end_ns for t in found.happened.transfers if t.late_ns)
    assert episode.intended.start_ns < first


def test_a_replica_hears_of_nothing_once_the_prefill_has_ended() -> None:
    scene = run().happened.scene
    assert Handover(scene, [Instance({}, iter(()))], {}).next_ns(1) is None


def test_a_link_that_nobody_used_meanwhile_has_no_effect() -> None:
    label = simulate(Order(SEED, ("kv_transfer_slow",), replace(WANTED, steps=60), 1.0)).labels[0]
    assert label.episode().class_ == "no_effect"


def test_a_cache_is_as_large_as_layers_heads_and_tokens_make_it() -> None:
    scene = run().happened.scene
    assert scene.tp == 2
    assert cache_bytes(scene, 1000) == 2 * 36 * 4 * 128 * 2 * 1000


def test_no_link_is_slow_where_all_is_on_one_host() -> None:
    alone = draw.scene(1, replace(WANTED, layout=Layout(2, dp=2, prefill=1)))
    assert pairs(alone) == ()
    assert not causes.fits(causes.spec("kv_transfer_slow"), alone)
    assert causes.fits(causes.spec("kv_transfer_slow"), run().happened.scene)


def test_ranges_of_the_connector_are_the_transfers_of_each_rank_that_decodes() -> None:
    for seed in range(SEED, SEED + 20):
        happened = simulate(Order(seed, (), WANTED)).happened
        if "NixlConnectorWorker._read_blocks" in happened.names:
            break
    number = happened.names.index("NixlConnectorWorker._read_blocks")
    for place, spans in zip(happened.scene.places, happened.host, strict=True):
        own = spans.name == number
        told = [t for t in happened.transfers if t.target == place.dp]
        assert spans.start_ns[own].tolist() == [t.start_ns for t in told]
        assert spans.end_ns[own].tolist() == [t.end_ns for t in told]
        assert (spans.kind[own] == HostKind.PHASE).all()


def test_the_log_sums_up_the_caches_of_an_interval(tmp_path: Path) -> None:
    happened = run().happened
    scene = replace(happened.scene, engine_version="0.14.0")
    longer = replace(happened, scene=scene, end_ns=20 * S)
    recording = plain(scene, engine_log=True)
    files = dict(engine_log.write_logs(longer, recording, tmp_path))
    for host in (1, 2):
        reader = reader_for(head_of(files[host]), files[host])
        assert reader is not None
        [log] = reader.read(files[host]).records
        told = [s["value"] for s in log.samples.to_pylist() if s["name"] == "kv.transfer_ns"]
        # the first line comes after a second, and sums up what came until then
        own = [t for t in happened.transfers if t.target == host and t.end_ns < S]
        assert told[0] == pytest.approx(np.mean([t.end_ns - t.start_ns for t in own]), abs=1_000)


def test_telemetry_of_sglang_has_each_transfer_as_a_stage(tmp_path: Path) -> None:
    happened = run("sglang").happened
    path = client.write_otlp(happened, plain(happened.scene), tmp_path)
    reader = reader_for(head_of(path), path)
    assert reader is not None
    [found] = reader.read(path).records
    told = [s for s in found.samples.to_pylist() if s["name"] == "kv.transfer_ns"]
    sent = [t for t in happened.transfers if t.end_ns <= happened.end_ns]
    assert sorted(s["value"] for s in told) == sorted(t.end_ns - t.ready_ns for t in sent)
    assert {s["host"] for s in told} == {happened.scene.hosts[0].name}


def test_runs_without_it_keep_their_names() -> None:
    plain_, apart = Layout(2, dp=2, hosts=2), Layout(2, dp=2, hosts=2, prefill=1)
    names = {name_of(Order(1, (), replace(WANTED, layout=one))) for one in (plain_, apart)}
    assert len(names) == 2
    assert "prefill" not in repr(Order(1, (), replace(WANTED, layout=plain_)))
