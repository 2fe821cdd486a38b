"""What is known of each rank over the whole run: clocks, power, how busy, how it compares."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from teller.graph.medians import Floats, Ints
from teller.models.archived import Archived, filled, ints

# Levels are compared with the other ranks' middle; ratios and shares stand for themselves.
LEVELS: Final = (
    "gpu.sm_clock_mhz", "gpu.mem_clock_mhz", "gpu.power_w", "gpu.temperature_c",
    "compare.device_own_ns", "compare.host_own_ns", "compare.comm_ns",
)  # fmt: skip
SHARES: Final = (
    "gpu.throttle_reasons", "gpu.utilisation_ratio", "compare.device_ratio", "compare.host_ratio",
    "compare.device_slower_share", "compare.host_slower_share", "pace.busy_ratio",
    "pace.kernel_busy_ratio", "pace.step_busy_ratio", "pace.step_host_idle_ratio",
    "pace.prompt_ratio", "capture.launched_ratio",
)  # fmt: skip
COUNTS: Final = ("pace.launches", "pace.graph_launches", "pace.graph_rows", "pace.driver_launches")
OVER: Final = "pace.device_rows"
NAMES: Final = (
    *(f"{n}/{what}" for n in LEVELS for what in ("mean", "least")), *SHARES,
    *(f"{n}/rows" for n in COUNTS), "ranks", "hosts", "same_host",
)  # fmt: skip


def standing(run: Archived, rank: Ints) -> Floats:
    """Give what is known of each of these ranks, of shape (ranks, len(NAMES)); 0: nothing."""
    table = run.table("Sample")
    value = table["value"].cast(pa.float64()).fill_null(float("nan")).to_numpy()
    name, own = table["name"].combine_chunks(), rank_of(run, table)

    def seen(of: str) -> list[Floats]:
        at = pc.equal(name, of).to_numpy(zero_copy_only=False) & ~np.isnan(value)
        return [value[at & (own == r)] for r in rank.tolist()]

    columns: list[Floats] = []
    for level in LEVELS:
        for summary in (np.mean, np.min):
            columns.append(_against_peers(np.array([_of(summary, v) for v in seen(level)])))
    columns += [_plain(np.array([_of(np.mean, v) for v in seen(n)])) for n in SHARES]
    rows = np.array([_of(np.mean, v) for v in seen(OVER)])
    for count in COUNTS:
        columns.append(_plain(np.array([_of(np.mean, v) for v in seen(count)]) / rows))
    return np.stack([*columns, *_places(run, rank)], axis=1)


def _of(summary: Callable[[Floats], float], values: Floats) -> float:
    return float(summary(values)) if len(values) else float("nan")


def _against_peers(level: Floats) -> Floats:
    known = level[~np.isnan(level) & (level > 0)]
    if not len(known):
        return np.zeros(len(level))
    ratio = np.log(np.maximum(level, 1e-9) / np.median(known))
    against: Floats = np.nan_to_num(np.clip(5 * ratio, -4, 4))
    return against


def _plain(share: Floats) -> Floats:
    plain: Floats = np.nan_to_num(np.clip(share, -4, 4), nan=0.0, posinf=0.0, neginf=0.0)
    return plain


def _places(run: Archived, rank: Ints) -> list[Floats]:
    """Give how many ranks and hosts there are, and the share of ranks on the own host."""
    known = dict(zip(ints(run.ranks["rank"]).tolist(), run.ranks["host"].to_pylist(), strict=True))
    hosts = [known.get(r) for r in rank.tolist()]
    share = [hosts.count(h) / max(len(hosts), 1) for h in hosts]
    size = np.full(len(rank), np.log1p(len(rank)) / 4)
    return [size, np.full(len(rank), np.log1p(len(set(hosts))) / 2), np.array(share)]


def rank_of(run: Archived, samples: pa.Table) -> Ints:
    """Give the rank that each sample is about, by itself or by its device; -1 for none."""
    own = filled(samples["rank"], -1).copy()
    about, uses = run.table("ABOUT.Sample.Device"), run.table("USES_DEVICE.Rank.Device")
    number = dict(zip(run.ranks["id"].to_pylist(), run.ranks["rank"].to_pylist(), strict=True))
    user = dict(zip(uses["dst"].to_pylist(), uses["src"].to_pylist(), strict=True))
    of_device = {
        s: number.get(user.get(d), -1)
        for s, d in zip(about["src"].to_pylist(), about["dst"].to_pylist(), strict=True)
    }
    told = np.array([of_device.get(i, -1) for i in samples["id"].to_pylist()], np.int64)
    return np.where(own >= 0, own, told) if len(told) else own
