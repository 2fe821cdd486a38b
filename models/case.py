"""One run in a store, with what all rules ask for, asked once."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from teller.graph.store import Store
from teller.models import episodes, numeric
from teller.models.episodes import Episode

Row = dict[str, Any]

PARAMETER: Final = re.compile(r"\$(\w+)")
WORTH: Final = 0.03  # of the time of its steps: an episode below this is not looked into
MOST_EPISODES: Final = 24


class Case:
    """One run in a store, with what all rules ask for, asked once."""

    def __init__(self, store: Store, run: int, baseline: int | None = None) -> None:
        """Look at one run, beside a healthy one where there is one."""
        self.store, self.run, self.baseline = store, run, baseline

    def rows(self, cypher: str, values: Mapping[str, Any]) -> list[Row]:
        """Give the rows of a query; parameters that it does not use are left out."""
        names = set(PARAMETER.findall(cypher))
        # A literal lets the embedded engine read late; a parameter does not (8 times slower).
        text = cypher.replace("$run", str(self.run))
        used = {k: v for k, v in values.items() if k in names and k != "run"}
        rows: list[Row] = self.store.query(text, used).to_pylist()
        return rows

    @cached_property
    def ranks(self) -> dict[int, Row]:
        """Give id, host, device and input of each rank."""
        rows = self.rows(
            "MATCH (r:Rank) WHERE r.run_id = $run "
            "OPTIONAL MATCH (r)-[:USES_DEVICE]->(d:Device) "
            "RETURN r.rank AS rank, r.id AS id, r.host AS host, d.name AS device",
            {},
        )
        return {r["rank"]: r for r in rows}

    @cached_property
    def inputs(self) -> dict[int, str]:
        """Give the path of each input."""
        rows = self.rows(
            "MATCH (i:Input) WHERE i.run_id = $run RETURN i.id AS id, i.path AS path", {}
        )
        return {r["id"]: r["path"] for r in rows}

    @cached_property
    def rank_inputs(self) -> dict[int, str]:
        """Give the path that tells each rank's story."""
        rows = self.rows(
            "MATCH (i:Input) WHERE i.run_id = $run AND i.used RETURN i.rank AS rank, "
            "i.path AS path ORDER BY path",
            {},
        )
        whole = next((r["path"] for r in rows if r["rank"] is None), "")
        named = {r["rank"]: r["path"] for r in rows if r["rank"] is not None}
        return {rank: named.get(rank, whole) for rank in self.ranks}

    @cached_property
    def iterations(self) -> dict[int, Row]:
        """Give start, end and duration of each iteration."""
        rows = self.rows(
            "MATCH (i:Iteration) WHERE i.run_id = $run RETURN i.step_index AS step_index, "
            "i.start_ns AS start_ns, i.end_ns AS end_ns, i.dur_ns AS dur_ns",
            {},
        )
        return {r["step_index"]: r for r in rows}

    @cached_property
    def steps(self) -> pa.Table:
        """Give all steps with their scores."""
        return numeric.score(self.store, self.run)

    @cached_property
    def episodes(self) -> list[tuple[Row, Episode]]:
        """Give the stretches in which one rank was slower than its peers, the costliest first.

        These are the numeric candidates; a row has `rank`, `first_step`, `last_step`,
        `step_count`, `level_ns`, `episode_ns` (the excess), `start_ns` and `end_ns`.
        """
        found = []
        rank, index = self.steps["rank"].to_numpy(), self.steps["step_index"].to_numpy()
        if len(np.unique(rank)) < 2:
            return []  # its steps are compared with one another: no peer is faster
        excess, own = self.steps["excess_ns"].to_numpy(), self.steps["own_ns"].to_numpy()
        for one in np.unique(rank).tolist():
            mine = rank == one
            for episode in episodes.find_all(index[mine].tolist(), excess[mine].tolist()):
                inside = mine & np.isin(index, episode.steps)
                if episode.excess_ns >= WORTH * own[inside].sum():
                    found.append((self._row(one, episode), episode))
        found.sort(key=lambda f: -f[1].excess_ns)
        return found[:MOST_EPISODES]

    def _row(self, rank: int, episode: Episode) -> Row:
        return {
            "rank": rank,
            "first_step": episode.first,
            "last_step": episode.last,
            "step_count": len(episode.steps),
            "level_ns": episode.level_ns,
            "episode_ns": episode.excess_ns,
            "start_ns": self.iterations[episode.first]["start_ns"],
            "end_ns": self.iterations[episode.last]["end_ns"],
        }
