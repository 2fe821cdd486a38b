"""A migration that is killed is made whole by doing it again."""

from collections.abc import Iterator

import pytest
from neo4j import Driver

from teller.graph import migrate
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.neo4j_address import Address
from tests.graph.killing import CLI, killed, moments, started

pytestmark = [pytest.mark.neo4j, pytest.mark.slow]

KILLS = 4
KINDS = {
    "CONSTRAINT": "SHOW CONSTRAINTS YIELD name, labelsOrTypes AS on, properties AS of, type",
    "INDEX": "SHOW INDEXES YIELD name, labelsOrTypes AS on, properties AS of, type, state, "
             "owningConstraint WHERE owningConstraint IS NULL AND type <> 'LOOKUP'",
}  # fmt: skip
CHAIN = (
    "MATCH (a:__Neo4jMigration)-[:MIGRATED_TO]->(b:__Neo4jMigration) "
    "RETURN a.version AS before, b.version AS version, b.checksum AS checksum ORDER BY version"
)


def schema(driver: Driver) -> list[list[object]]:
    """Give all constraints and indexes, and what is noted of how they came."""
    found = [r.values() for kind in KINDS for r in driver.execute_query(asked(kind)).records]
    return [*found, *(r.values() for r in driver.execute_query(CHAIN).records)]


def asked(kind: str) -> str:
    columns = "name, on, of, type" + (", state" if kind == "INDEX" else "")
    return f"{KINDS[kind]} RETURN {columns} ORDER BY name"


def wipe(driver: Driver) -> None:
    for kind in KINDS:
        for record in driver.execute_query(asked(kind)).records:
            driver.execute_query(f"DROP {kind} {record['name']}")
    driver.execute_query("MATCH (m:__Neo4jMigration) DETACH DELETE m")


@pytest.fixture
def driver(neo4j_store: Neo4jStore) -> Iterator[Driver]:
    """Give a driver of the server, which has its schema again at the end, whatever happens."""
    with connect(neo4j_store.address) as opened:
        yield opened
        migrate.migrate(opened, neo4j_store.address)


@pytest.fixture
def at(neo4j_store: Neo4jStore) -> Address:
    return neo4j_store.address


def test_a_migration_killed_at_any_moment_and_done_again_is_one_that_was_not(
    driver: Driver, at: Address
) -> None:
    wipe(driver)
    migrate.migrate(driver, at)
    wanted = schema(driver)
    hit = 0

    def there() -> int:
        return len(schema(driver))

    for moment in moments(len(wanted), KILLS, seed=5):
        wipe(driver)
        hit += killed(moment, there, started(at, CLI, "migrate", "--store", at.uri))
        again = started(at, CLI, "migrate", "--store", at.uri)
        assert (again.communicate()[1].strip(), again.returncode) in (
            ("", 0), (f"{at.uri} is up to date", 0),
        )  # fmt: skip
        assert schema(driver) == wanted
    assert hit >= KILLS - 1
