"""The graph in one file of the embedded engine: rebuilt at will, owned by one process at a time."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import ladybug
import pyarrow as pa

from teller.errors import BadUsage, StoreBusy
from teller.graph import bulk, cypher, parts, reading, small
from teller.graph.engine_words import answer, number, our_errors, plain
from teller.graph.schema import NODES, RUN
from teller.graph.store import Can
from teller.graph.tables import TABLES, table_of

ENGINE: Final = f"ladybug-{ladybug.__version__}"
POOL_BYTES: Final = 512 << 20  # 256 MiB fails at 5·10⁶ spans
TIMEOUT_S: Final = 60.0
DEEPEST: Final = 256  # levels of a walk; the engine stops at 30 unless each connection is told
DROP_ROWS: Final = 20_000  # nodes a transaction; a million at once fill the pool
MOST_TEXTS: Final = 64  # asked over one connection
MOST_BYTES: Final = 1 << 40  # of address space; the engine's own default is 8 TiB a file


@dataclass(slots=True)
class _Open:
    """A file that this process has open. Two `Database` objects on one file would break it."""

    database: ladybug.Database
    read_only: bool
    holders: int = 0


_OPEN: dict[Path, _Open] = {}
_OPENING = threading.Lock()


class EmbeddedStore:
    """A `Store` in one file. Several stores of a process on one file share what is open."""

    can: Final = Can(snapshot=True)

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        pool_bytes: int = POOL_BYTES,
        timeout_s: float = TIMEOUT_S,
        threads: int = 0,
    ) -> None:
        """Open the file, or make it; `threads` 0 means one a core."""
        self.path = path.resolve()
        self.read_only = read_only
        self.timeout_s = timeout_s
        self._here = threading.local()
        self._connections: list[ladybug.Connection] = []
        self._writing = threading.Lock()
        self._write_connection: ladybug.Connection | None = None
        self._closed = False
        with our_errors(timeout_s, str(path)):
            self._database = _hold(self.path, read_only, pool_bytes, threads)
        if not read_only:
            self._make_tables()

    def load(self, run_id: int, files: Mapping[str, Sequence[Path]]) -> None:
        """Load a whole run that is not there yet, from Parquet files by table name."""
        found = parts.look(run_id, files)
        # each table is a transaction of its own: all in one keep 170 bytes a relation in memory,
        # double the file, and end the process at 5·10⁶ spans
        with self._writer() as connection:
            bulk.load(connection, run_id, found)

    def append(
        self, run_id: int, tables: Mapping[str, pa.Table], *, skip_lost: bool = False
    ) -> None:
        """Add the rows that are not there yet; all of them or none."""
        fitted = small.fitted(run_id, tables)
        with self._transaction() as connection:
            for table, rows in fitted:
                small.add(connection, table, rows, skip_lost=skip_lost)

    def update(self, label: str, table: pa.Table) -> None:
        """Set the given columns of the nodes whose `id` is there; other ids are passed over."""
        with self._transaction() as connection:
            small.change(connection, table_of(label), table)

    def remove(self, label: str, ids: Sequence[int]) -> None:
        """Remove these nodes with their relations; ids that are not there are passed over."""
        with self._transaction() as connection:
            small.remove(connection, table_of(label), ids)

    def drop(self, run_id: int) -> None:
        """Remove a run with all its relations; cut short, it can be done again.

        It takes about 100 µs a node, far more than loading one: rebuild rather than drop much.
        """
        labels = [n.label for n in NODES if n is not RUN] + [RUN.label]
        for label in labels:
            gone = f"MATCH (n:{label}) WHERE n.run_id = $run WITH n LIMIT {DROP_ROWS}"
            while self._one(f"MATCH (n:{label}) WHERE n.run_id = $run RETURN count(*)", run_id):
                with self._transaction() as connection:
                    connection.execute(f"{gone} DETACH DELETE n", {"run": run_id})

    def runs(self) -> list[int]:
        """Give the ids of the runs that are there, ascending."""
        found = self.query(f"MATCH (n:{RUN.label}) RETURN n.run_id AS run_id ORDER BY run_id")
        return [int(run) for run in found.column(0).to_pylist()]

    def counts(self) -> dict[str, int]:
        """Give the number of rows of every table of the schema."""
        with our_errors(self.timeout_s, str(self.path)):
            return {name: bulk.count(self._reader(), table) for name, table in TABLES.items()}

    def query(self, text: str, params: Mapping[str, object] | None = None) -> pa.Table:
        """Answer one reading statement; every `$name` in it must be given, and nothing else."""
        given = dict(params or {})
        question = reading.check_asked(text, given)
        connection = self._reader()
        with our_errors(self.timeout_s, str(self.path)):
            connection.execute("BEGIN TRANSACTION READ ONLY")
            try:
                result = _asked(connection, question.text, given)
                # a result without columns breaks the engine's own conversion
                return plain(result.get_as_arrow()) if result.get_column_names() else pa.table({})
            finally:
                _end(connection, "COMMIT")

    def close(self) -> None:
        """Let go of the file; what was written is in it alone, with no log beside it."""
        if self._closed:
            return
        self._closed = True
        for connection in self._connections:
            connection.close()
        with our_errors(self.timeout_s, str(self.path)):
            _let_go(self.path)

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

    def _make_tables(self) -> None:
        with self._transaction() as connection:
            if number(connection, "CALL show_tables() RETURN count(*)") == 0:
                for statement in cypher.embedded_ddl():
                    connection.execute(statement)

    def _one(self, text: str, run_id: int) -> int:
        return int(self.query(text, {"run": run_id})[0][0].as_py())

    def _reader(self) -> ladybug.Connection:
        if self._closed:
            raise BadUsage(f"the store {self.path} is closed")
        connection = getattr(self._here, "connection", None)
        # each text keeps 1.5 MB of the pool for as long as its connection lives
        if connection is not None and self._here.asked >= MOST_TEXTS:
            self._connections.remove(connection)
            connection.close()
            connection = None
        if connection is None:
            connection = self._connect()
            connection.set_query_timeout(int(self.timeout_s * 1000))
            self._here.connection, self._here.asked = connection, 0
        self._here.asked += 1
        return connection

    def _connect(self) -> ladybug.Connection:
        connection = ladybug.Connection(self._database)
        self._connections.append(connection)
        connection.execute(f"CALL var_length_extend_max_depth={DEEPEST}")
        return connection

    @contextmanager
    def _writer(self) -> Iterator[ladybug.Connection]:
        """Give the connection that writes, without time-out, to one thread at a time."""
        if self._closed or self.read_only:
            raise BadUsage(f"the store {self.path} is {'closed' if self._closed else 'read-only'}")
        with self._writing, our_errors(self.timeout_s, str(self.path)):
            if self._write_connection is None:
                self._write_connection = self._connect()
            yield self._write_connection

    @contextmanager
    def _transaction(self) -> Iterator[ladybug.Connection]:
        """Give the writer's connection for work that is kept whole, or not at all."""
        with self._writer() as connection:
            connection.execute("BEGIN TRANSACTION")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:  # an interrupt too ends the transaction
                _end(connection, "ROLLBACK")
                raise


def _end(connection: ladybug.Connection, how: str) -> None:
    with suppress(RuntimeError):  # some errors end the transaction, others leave it open
        connection.execute(how)


def _asked(
    connection: ladybug.Connection, text: str, given: Mapping[str, object]
) -> ladybug.QueryResult:
    """Give the answer to a query whose values come from outside."""
    try:
        return answer(connection, text, given)
    except (TypeError, ValueError, OverflowError) as err:  # lists of mixed kinds, and the like
        said = ", ".join(f"${n}" for n in given)
        raise BadUsage(f"the engine cannot take a value of {said}: {err}") from err


def _hold(path: Path, read_only: bool, pool_bytes: int, threads: int) -> ladybug.Database:
    with _OPENING:
        known = _OPEN.get(path)
        if known is None:
            database = ladybug.Database(
                str(path),
                read_only=read_only,
                buffer_pool_size=pool_bytes,
                max_num_threads=threads,
                max_db_size=MOST_BYTES,
            )
            known = _OPEN[path] = _Open(database, read_only)
        elif known.read_only and not read_only:
            raise StoreBusy(f"{path} is open for reading in this process; close it before writing")
        known.holders += 1
        return known.database


def _let_go(path: Path) -> None:
    with _OPENING:
        known = _OPEN[path]
        known.holders -= 1
        if known.holders == 0:
            del _OPEN[path]
            known.database.close()
