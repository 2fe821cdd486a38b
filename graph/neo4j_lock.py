"""A lock that a Neo4j server keeps for one client, and lets go when that client is gone."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from neo4j import Driver
from neo4j.exceptions import ClientError, DriverError, Neo4jError

from teller.errors import StoreBusy

LABEL: Final = "__TellerLock"
READY: Final = (
    f"CREATE CONSTRAINT __teller_lock_name IF NOT EXISTS FOR (l:{LABEL}) REQUIRE l.name IS UNIQUE"
)
WAIT_S: Final = 20.0  # for another client; a server that has just started takes seconds by itself
_WAITED: Final = ("TransactionTimedOut", "LockClientStopped")  # the second while it waits for it
# a merge of a unique name locks it also where the node is not there yet, and so does setting
_TAKE: Final = f"MERGE (l:{LABEL} {{name: $name}}) SET l.holder = $holder"


@contextmanager
def held(
    driver: Driver, database: str, name: str, what: str, wait_s: float = WAIT_S
) -> Iterator[None]:
    """Hold the lock of that name: a transaction that stays open, and is undone at the end.

    It goes with the connection: a client that is killed leaves nothing behind.
    """
    driver.execute_query(READY, database_=database)
    holder = f"{socket.gethostname()}:{os.getpid()}"
    given = {"name": name, "holder": holder}
    with driver.session(database=database) as session:
        try:
            probe = session.begin_transaction(timeout=wait_s)
            probe.run(_TAKE, given).consume()
            probe.rollback()
        except ClientError as err:
            if not any(word in (err.code or "") for word in _WAITED):
                raise
            raise StoreBusy(f"{what} by another process; wait until it is done") from err
        kept = session.begin_transaction()
        kept.run(_TAKE, given).consume()
        try:
            yield
        finally:
            with suppress(DriverError, Neo4jError):  # the server may have gone away meanwhile
                kept.rollback()
