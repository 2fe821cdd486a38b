"""What causes on the network, in its library and among ranks do to a step."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from teller.lab.simulator import links
from teller.lab.simulator.acting import MS, Now, act
from teller.lab.simulator.causes import Cause
from teller.lab.simulator.effects import Effects
from teller.lab.simulator.links import Wire


def _crossing(cause: Cause, now: Now, out: Effects, change: Callable[[Wire], Wire]) -> None:
    """Change the wire of all groups that go over the network at the struck host."""
    for place, group in enumerate(now.scene.groups):
        hosts = {now.scene.places[r].host for r in group.ranks}
        if len(hosts) > 1 and (cause.spec.target == "all" or cause.host in hosts):
            wire = out.wires.get(place) or links.wire_of(now.scene, group)
            out.wires[place] = change(wire)


def _inside(cause: Cause, now: Now, out: Effects, change: Callable[[Wire], Wire]) -> None:
    """Change the wire of all groups that have several ranks on the struck host."""
    for place, group in enumerate(now.scene.groups):
        here = [r for r in group.ranks if now.scene.places[r].host == cause.host]
        if len(here) > 1:
            wire = out.wires.get(place) or links.wire_of(now.scene, group)
            out.wires[place] = change(wire)


@act("slow_path")
def _slow_path(cause: Cause, now: Now, out: Effects) -> None:
    f = cause.severity
    _crossing(
        cause, now, out, lambda w: replace(w, network=w.network / f, hop_us=w.hop_us + 6 * (f - 1))
    )


@act("transport_fallback")
def _transport_fallback(cause: Cause, now: Now, out: Effects) -> None:
    _crossing(cause, now, out, lambda w: replace(w, socket=True))


@act("packet_loss")
def _packet_loss(cause: Cause, now: Now, out: Effects) -> None:
    if now.random.random() > cause.severity:
        return
    lost = now.random.exponential(1.0) * (200 * MS if now.random.random() < 0.1 else 4 * MS)
    for place, group in enumerate(now.scene.groups):
        hosts = {now.scene.places[r].host for r in group.ranks}
        if len(hosts) > 1 and cause.host in hosts:
            out.tails[place] = out.tails.get(place, 0.0) + lost


@act("congestion")
def _congestion(cause: Cause, now: Now, out: Effects) -> None:
    burst = np.random.default_rng([now.scene.seed, 10, cause.number, now.step // 6]).random()
    if burst < 0.45:
        f = cause.severity
        _crossing(
            cause,
            now,
            out,
            lambda w: replace(w, network=w.network / f, hop_us=w.hop_us + 9 * (f - 1)),
        )


@act("gdr_disabled")
def _gdr_disabled(cause: Cause, now: Now, out: Effects) -> None:
    share = cause.severity
    _crossing(cause, now, out, lambda w: replace(w, network=w.network * share, hop_us=w.hop_us + 8))


@act("wrong_nic")
def _wrong_nic(cause: Cause, now: Now, out: Effects) -> None:
    f = cause.severity
    _crossing(cause, now, out, lambda w: replace(w, network=w.network / f, hop_us=w.hop_us + 2))


@act("comm_config")
def _comm_config(cause: Cause, now: Now, out: Effects) -> None:
    out.pinned = ("ring", "Simple") if cause.rank % 2 else ("tree", "Simple")


@act("p2p_blocked")
def _p2p_blocked(cause: Cause, now: Now, out: Effects) -> None:
    _inside(cause, now, out, lambda w: replace(w, peer=False))
    out.own_all_reduce = False


@act("custom_allreduce_off")
def _custom_off(cause: Cause, now: Now, out: Effects) -> None:
    out.own_all_reduce = False


@act("kv_transfer_slow")
def _kv_transfer_slow(cause: Cause, now: Now, out: Effects) -> None:
    link = (cause.peer, cause.host)
    out.transfers[link] = out.transfers.get(link, 1.0) * cause.severity


@act("collective_missing_rank")
def _missing(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        out.stuck = (cause.rank, int(now.random.integers(0, 1 + cause.layer)))


@act("collective_mismatch")
def _mismatch(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        out.mismatch = (cause.rank, int(now.random.integers(0, 1 + cause.layer)))


@act("worker_crash")
def _crash(cause: Cause, now: Now, out: Effects) -> None:
    if now.step == cause.first:
        out.dead = cause.rank
        out.stuck = (cause.rank, int(now.random.integers(0, 1 + cause.layer)))
