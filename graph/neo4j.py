"""The graph on a Neo4j server, which several people and programs share."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pyarrow as pa
from neo4j import READ_ACCESS, Driver, GraphDatabase, Query, Result, RoutingControl, Session
from neo4j.exceptions import ConstraintError

from teller.errors import BadUsage, SchemaMismatch, StoreBusy
from teller.graph import migrate, neo4j_answer, neo4j_lock, neo4j_write, parts, reading, small
from teller.graph.answer import Found, Limits
from teller.graph.neo4j_address import Address
from teller.graph.neo4j_words import check_names, our_errors, table
from teller.graph.neo4j_write import Batch, Tx, send
from teller.graph.parts import Part
from teller.graph.reading import Question
from teller.graph.schema import LOG_LINE, NODES, RUN, SAMPLE, SPAN, Node
from teller.graph.store import Can
from teller.graph.tables import TABLES, GraphTable, table_of

T = TypeVar("T")

TIMEOUT_S: Final = 60.0
CONNECT_S: Final = 10.0
PATIENCE_S: Final = 60.0  # a server that is started again is back by then
LOADED: Final = "__TellerLoaded"  # a run that is there whole, and what was noted with it
DROP_ROWS: Final = 5_000  # nodes a transaction, with their relations
# what the server has to say beside an answer: of that, only unknown names are of use
UNHEARD: Final = ("HINT", "UNSUPPORTED", "PERFORMANCE", "DEPRECATION", "SECURITY", "TOPOLOGY",
                  "SCHEMA", "GENERIC")  # fmt: skip


class Neo4jStore:
    """A `Store` on a server. A run's own node comes last: a run without it is there in part."""

    can: Final = Can()

    def __init__(self, address: Address, *, timeout_s: float = TIMEOUT_S) -> None:
        """Reach the server, and see that its schema is that of this release."""
        self.address = address
        self.timeout_s = timeout_s
        self._closed = False
        self._driver = connect(address)
        try:
            with self._ours():
                migrate.check(self._driver, address)
        except BaseException:  # whatever it is, connections are let go of
            self.close()
            raise

    def load(self, run_id: int, files: Mapping[str, Sequence[Path]], state: str = "") -> None:
        """Load a whole run that is not there yet, from Parquet files by table name.

        `state` is noted with it. Cut off, it leaves a run in part: `runs` and `states` do not
        tell it, `drop` removes it.
        """
        found = parts.look(run_id, files)
        shared = frozenset(p.table.name for p in found if p.own < p.rows)
        with self._ours(), self._sole_writer(run_id):
            self._must_be_absent(run_id)
            for part in neo4j_write.early(found):
                self._pour(run_id, part, shared)
            last = [b for p in neo4j_write.late(found) for b in neo4j_write.batches(p, shared)]
            writes = [neo4j_write.writing(batch) for batch in last]
            self._do(lambda tx: [write(tx) for write in (*writes, note(run_id, state))])

    def append(
        self, run_id: int, tables: Mapping[str, pa.Table], *, skip_lost: bool = False
    ) -> None:
        """Add the rows that are not there yet; all of them or none."""
        fitted = small.fitted(run_id, tables)

        def write(tx: Tx) -> None:
            for one, rows in fitted:
                neo4j_write.merge(tx, one, rows, skip_lost=skip_lost)

        with self._ours():
            self._do(write)

    def update(self, label: str, table: pa.Table) -> None:
        """Set the given columns of the nodes whose `id` is there; other ids are passed over."""
        node, rows = small.changes(table_of(label), table)
        with self._ours():
            self._do(lambda tx: neo4j_write.change(tx, node, rows))

    def remove(self, label: str, ids: Sequence[int]) -> None:
        """Remove these nodes with their relations; ids that are not there are passed over."""
        kind = table_of(label).kind
        if not isinstance(kind, Node):
            raise SchemaMismatch(f"{label}: only nodes are removed by id")
        text = f"UNWIND $ids AS i MATCH (n:{label} {{id: i}}) DETACH DELETE n"
        with self._ours():
            self._write(text, ids=list(ids))

    def drop(self, run_id: int) -> None:
        """Remove a run with all its relations; cut short, it can be done again."""
        first = (RUN, SPAN, LOG_LINE, SAMPLE)  # then no node with many relations is left
        with self._ours():
            self._write(f"MATCH (l:{LOADED} {{run_id: $run}}) DELETE l", run=run_id)
            for node in (*first, *(n for n in NODES if n not in first)):
                gone = (
                    f"MATCH (n:{node.label}) WHERE n.run_id = $run WITH n LIMIT {DROP_ROWS} "
                    "DETACH DELETE n RETURN count(*)"
                )
                while self._write(gone, run=run_id) != [[0]]:
                    pass

    def runs(self) -> list[int]:
        """Give the ids of the runs that are there whole, ascending."""
        found = self.query(f"MATCH (n:{RUN.label}) RETURN n.run_id AS run_id ORDER BY run_id")
        return [int(run) for run in found.column(0).to_pylist()]

    def states(self) -> dict[int, str]:
        """Give what was noted with each run that was loaded whole."""
        with self._ours():
            return dict(self._read(f"MATCH (l:{LOADED}) RETURN l.run_id, l.state"))

    def note(self, run_id: int, state: str) -> None:
        """Note something in the place of what was noted with the run."""
        with self._ours():
            self._do(note(run_id, state))

    def has_any(self, run_id: int) -> bool:
        """Tell whether anything of the run is there, also from a load that was cut off."""
        with self._ours():
            return bool(self._labels_of(run_id))

    def counts(self, run_id: int | None = None) -> dict[str, int]:
        """Give the number of rows of every table of the schema; of one run, with its own ends."""
        with self._ours():
            return {
                name: self._read(_counting(one, run_id), run=run_id)[0][0]
                for name, one in TABLES.items()
            }

    def query(self, text: str, params: Mapping[str, object] | None = None) -> pa.Table:
        """Answer one reading statement; every `$name` in it must be given, and nothing else."""
        given = dict(params or {})
        question = reading.check_asked(text, given)

        def told(result: Result) -> pa.Table:
            names, rows = result.keys(), result.values()
            check_names(result.consume().gql_status_objects)
            return table(question.text, names, rows)

        with self._ours(), _sendable(given):
            return self._driver.execute_query(
                Query(question.text, timeout=self.timeout_s),
                given,
                database_=self.address.database,
                routing_=RoutingControl.READ,
                result_transformer_=told,
            )

    def answer(self, question: Question, given: Mapping[str, object], limits: Limits) -> Found:
        """Answer a person's query within its limits."""
        if self._closed:
            raise BadUsage(f"the store {self.address.uri} is closed")
        with our_errors(self.address, limits.time_s), _sendable(given):
            return neo4j_answer.answer(self._driver, self.address.database, question, given, limits)

    def close(self) -> None:
        """Let go of the connections. Closing twice is no error."""
        self._closed = True
        self._driver.close()

    def __enter__(self) -> Self:
        """Give the store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    @contextmanager
    def _ours(self) -> Iterator[None]:
        if self._closed:
            raise BadUsage(f"the store {self.address.uri} is closed")
        with our_errors(self.address, self.timeout_s):
            yield

    @contextmanager
    def _sole_writer(self, run_id: int) -> Iterator[None]:
        what = f"run {run_id} is being loaded into {self.address.uri}"
        with neo4j_lock.held(self._driver, self.address.database, f"run {run_id}", what):
            yield

    def _session(self, **given: Any) -> Session:
        bookmarks = self._driver.execute_query_bookmark_manager  # who writes sees it at once
        return self._driver.session(
            database=self.address.database, bookmark_manager=bookmarks, **given
        )

    def _do(self, write: Callable[[Tx], T]) -> T:
        """Do a write in a transaction of its own, again where the server says that it may help."""
        with self._session() as session:
            return session.execute_write(write)

    def _write(self, text: str, **given: Any) -> list[list[Any]]:
        return self._do(lambda tx: send(tx, text, **given))

    def _read(self, text: str, **given: Any) -> list[list[Any]]:
        with self._session(default_access_mode=READ_ACCESS) as session:
            return session.execute_read(lambda tx: send(tx, text, **given))

    def _pour(self, run_id: int, part: Part, shared: frozenset[str]) -> None:
        rows: Iterator[Batch] = neo4j_write.batches(part, shared)
        try:
            neo4j_write.pour(rows, self._do)
        except ConstraintError as err:
            raise self._collision(run_id, part) from err

    def _collision(self, run_id: int, part: Part) -> Exception:
        def elsewhere(ids: list[int]) -> list[tuple[int, int]]:
            return self._do(lambda tx: neo4j_write.taken(tx, part.table.name, run_id, ids))

        found = parts.collision(run_id, part, elsewhere)
        return found or StoreBusy(f"run {run_id} is being loaded by another process")

    def _must_be_absent(self, run_id: int) -> None:
        if found := self._labels_of(run_id):
            how = "already" if RUN.label in found else "in part, from a load that was cut off"
            raise BadUsage(f"run {run_id} is in the graph {how}; drop it before loading it")

    def _labels_of(self, run_id: int) -> set[str]:
        one = "MATCH (n:{0} {{run_id: $run}}) RETURN '{0}' AS label LIMIT 1"
        text = " UNION ALL ".join(one.format(n.label) for n in NODES)
        return {row[0] for row in self._read(text, run=run_id)}


@contextmanager
def _sendable(given: Mapping[str, object]) -> Iterator[None]:
    """Say which values may be those that the driver cannot send."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as err:
        said = ", ".join(f"${n}" for n in given)
        raise BadUsage(f"the server cannot take a value of {said}: {err}") from err


def note(run_id: int, state: str) -> neo4j_write.Write:
    """Give the write that notes a state with a run."""
    text = f"MERGE (l:{LOADED} {{run_id: $run}}) SET l.state = $state"
    return lambda tx: send(tx, text, run=run_id, state=state)


def connect(address: Address) -> Driver:
    """Give a driver for the server, which lets the user in."""
    logging.getLogger("neo4j").setLevel(logging.CRITICAL)  # what it logs comes as errors too
    with our_errors(address, TIMEOUT_S):
        driver = GraphDatabase.driver(
            address.uri,
            auth=(address.user, address.password) if address.password else None,
            connection_timeout=CONNECT_S,
            max_transaction_retry_time=PATIENCE_S,
            notifications_disabled_classifications=list(UNHEARD),
        )
        try:
            driver.verify_connectivity()  # whatever comes later is tried for as long as a minute
        except BaseException:  # whatever it is, connections are let go of
            driver.close()
            raise
        return driver


def _counting(one: GraphTable, run_id: int | None) -> str:
    """Give the count of a table; without a run the server has it ready."""
    own = " {run_id: $run}" if run_id is not None else ""
    if isinstance(one.kind, Node):
        return f"MATCH (n:{one.name}{own}) RETURN count(n)"
    if own:
        return f"MATCH (a:{one.src}{own})-[r:{one.kind.type}]->(:{one.dst}) RETURN count(r)"
    ends = one.kind.ends
    src = f":{one.src}" if len({a.label for a, _ in ends}) > 1 else ""
    dst = f":{one.dst}" if len({b.label for _, b in ends}) > 1 else ""
    return f"MATCH ({src})-[r:{one.kind.type}]->({dst}) RETURN count(r)"
