"""Bring a Neo4j store to the schema of this release, by the numbered files of `migrations/`.

Files and bookkeeping are those of neo4j-migrations: `V001__what_it_does.cypher`, and a chain of
`__Neo4jMigration` nodes with checksums. Every statement may be repeated, so that a migration that
was cut off is simply done again.
"""

import binascii
import getpass
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from neo4j import Driver, RoutingControl

from teller.errors import BadUsage, TellerError
from teller.graph import neo4j_lock, tokens
from teller.graph.neo4j_address import Address
from teller.graph.store import StoreUnreadable

BASELINE: Final = "BASELINE"
NAME: Final = re.compile(r"V(\d+)__(\w+)\.cypher")
UNIQUE: Final = (
    "CREATE CONSTRAINT unique_version___Neo4jMigration IF NOT EXISTS FOR (m:__Neo4jMigration) "
    "REQUIRE (m.version, m.project, m.migrationTarget) IS UNIQUE"
)
_START: Final = "MERGE (m:__Neo4jMigration {version: $version})"
_APPLIED: Final = """
MATCH (:__Neo4jMigration {version: $baseline})-[:MIGRATED_TO*]->(m:__Neo4jMigration)
WHERE m.project IS NULL AND m.migrationTarget IS NULL
RETURN m.version AS version, m.source AS source, m.checksum AS checksum
"""
_RECORD: Final = """
MATCH (last:__Neo4jMigration)
WHERE last.project IS NULL AND last.migrationTarget IS NULL
      AND NOT (last)-[:MIGRATED_TO]->(:__Neo4jMigration)
CREATE (last)-[:MIGRATED_TO {at: datetime(), in: duration({milliseconds: $ms}), by: $by,
                             connectedAs: $user}]->
       (:__Neo4jMigration {version: $version, description: $description, type: 'CYPHER',
                           source: $source, checksum: $checksum})
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its version, what it is for, its statements, and their checksum."""

    version: str
    description: str
    source: str
    statements: tuple[str, ...]
    checksum: str


@cache
def known() -> tuple[Migration, ...]:
    """Give the migrations of this release, in order."""
    found = (p for p in files("teller.migrations").iterdir() if NAME.fullmatch(p.name))
    made = [parsed(path.name, path.read_text(encoding="utf-8")) for path in found]
    return tuple(sorted(made, key=lambda m: int(m.version)))


def parsed(name: str, text: str) -> Migration:
    """Give the migration in a file of that name."""
    match = NAME.fullmatch(name)
    if match is None:
        raise BadUsage(f"{name}: a migration is called V001__what_it_does.cypher")
    statements = tuple(_statements(text))
    if not statements:
        raise BadUsage(f"{name}: no statement is in it")
    checksum = 0
    for statement in statements:
        checksum = binascii.crc32(statement.encode(), checksum)
    return Migration(match[1], match[2].replace("_", " "), name, statements, str(checksum))


def _statements(text: str) -> Iterator[str]:
    """Split at the semicolons that end a statement; the last one needs none."""
    start = 0
    for end in (*tokens.ends(text), len(text)):
        if tokens.bare(text[start:end]).strip():
            yield text[start:end].strip()
        start = end + 1


def check(driver: Driver, address: Address) -> None:
    """Refuse a store whose schema is not that of this release."""
    waiting = pending(driver, address)
    if waiting:
        names = ", ".join(m.source for m in waiting)
        raise StoreUnreadable(
            f"{address.uri} lacks {names}: bring it up by `teller migrate --store {address.uri}`"
        )


def pending(
    driver: Driver, address: Address, wanted: Sequence[Migration] | None = None
) -> tuple[Migration, ...]:
    """Give what is to be applied, in order; a store with other or changed files is refused."""
    wanted = known() if wanted is None else wanted
    rows = _applied(driver, address)
    by_version = {int(m.version): m for m in wanted}
    for row in rows:
        mine = by_version.get(int(row["version"]))
        if mine is None:
            raise _newer(address, row["source"])
        if mine.checksum != row["checksum"]:
            raise BadUsage(
                f"{mine.source} was changed after it was applied to {address.uri}; bring it back "
                "as it was, and put the change into a new file"
            )
    done = {int(row["version"]) for row in rows}
    return tuple(m for m in wanted if int(m.version) not in done)


def _newer(address: Address, source: str) -> TellerError:
    return StoreUnreadable(
        f"{address.uri} has {source}, which this release does not know: it needs a newer teller"
    )


def _applied(driver: Driver, address: Address) -> list[dict[str, Any]]:
    found = driver.execute_query(
        _APPLIED, baseline=BASELINE, database_=address.database, routing_=RoutingControl.READ
    )
    return [dict(record) for record in found.records]


def migrate(
    driver: Driver, address: Address, wanted: Sequence[Migration] | None = None
) -> tuple[Migration, ...]:
    """Apply what is pending of the wanted, all by default, one client at a time; give it."""
    what = f"{address.uri} is being migrated"
    with neo4j_lock.held(driver, address.database, "migrate", what):
        waiting = pending(driver, address, wanted)
        if waiting:
            _do(driver, address, UNIQUE)
            _do(driver, address, _START, version=BASELINE)
        for one in waiting:
            begun = time.monotonic()
            for statement in one.statements:  # each by itself: schema and data do not mix
                _do(driver, address, statement)
            _do(driver, address, "CALL db.awaitIndexes(600)")
            _do(
                driver, address, _RECORD, version=one.version, description=one.description,
                source=one.source, checksum=one.checksum,
                ms=int((time.monotonic() - begun) * 1000),
                by=getpass.getuser(), user=address.user,
            )  # fmt: skip
    return waiting


def _do(driver: Driver, address: Address, text: str, **given: object) -> None:
    driver.execute_query(text, given, database_=address.database)
