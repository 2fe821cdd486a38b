"""A server's schema comes from numbered files, applied once, as neo4j-migrations keeps it."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from neo4j import Driver
from neo4j_python_migrations import loader
from neo4j_python_migrations.executor import Executor

from teller.errors import BadUsage, StoreBusy
from teller.graph import cypher, migrate, neo4j_lock
from teller.graph.neo4j import Neo4jStore, connect
from teller.graph.neo4j_address import Address
from teller.graph.schema import NODES
from teller.graph.store import StoreUnreadable

FOLDER = Path(str(files("teller.migrations")))
NEXT = migrate.parsed(
    "V900__next_thing.cypher",
    "CREATE INDEX next_thing IF NOT EXISTS FOR (n:Host) ON (n.name); // with a ';' in it\n"
    "MERGE (h:Host {id: 1}) SET h.name = 'a;b'",
)


def test_the_files_make_exactly_what_the_schema_says() -> None:
    statements = [s for one in migrate.known() for s in one.statements]
    assert sorted(statements) == sorted(cypher.neo4j_ddl())


def test_a_file_is_split_where_a_statement_ends_and_nowhere_else() -> None:
    assert NEXT.statements == (
        "CREATE INDEX next_thing IF NOT EXISTS FOR (n:Host) ON (n.name)",
        "// with a ';' in it\nMERGE (h:Host {id: 1}) SET h.name = 'a;b'",
    )
    assert (NEXT.version, NEXT.description) == ("900", "next thing")
    with pytest.raises(BadUsage, match="V001__what_it_does"):
        migrate.parsed("constraints.cypher", "RETURN 1;")


def test_the_common_tool_sees_the_same_files() -> None:
    theirs = [(m.version, m.description, m.source, m.checksum) for m in loader.load(FOLDER)]
    mine = [(m.version, m.description, m.source, m.checksum) for m in migrate.known()]
    assert theirs == mine


@pytest.fixture
def driver(neo4j_store: Neo4jStore) -> Iterator[Driver]:
    with connect(neo4j_store.address) as opened:
        yield opened
        opened.execute_query("DROP INDEX next_thing IF EXISTS")
        opened.execute_query("MATCH (m:__Neo4jMigration {version: '900'}) DETACH DELETE m")


@pytest.fixture
def at(neo4j_store: Neo4jStore) -> Address:
    return neo4j_store.address


@pytest.mark.neo4j
def test_a_migrated_server_has_a_constraint_and_an_index_for_each_label(driver: Driver) -> None:
    said = driver.execute_query(
        "SHOW CONSTRAINTS YIELD labelsOrTypes, properties, type "
        "WHERE NOT labelsOrTypes[0] STARTS WITH '__' RETURN labelsOrTypes[0] AS l, properties AS p"
    )
    assert sorted((r["l"], *r["p"]) for r in said.records) == sorted((n.label, "id") for n in NODES)
    said = driver.execute_query(
        "SHOW INDEXES YIELD labelsOrTypes, properties, owningConstraint, type "
        "WHERE type = 'RANGE' AND owningConstraint IS NULL "
        "RETURN labelsOrTypes[0] AS l, properties AS p"
    )
    found = sorted((r["l"], *r["p"]) for r in said.records)
    assert found == sorted((n.label, "run_id") for n in NODES)


@pytest.mark.neo4j
def test_the_common_tool_reads_what_was_applied(driver: Driver) -> None:
    said = Executor(driver, FOLDER).analyze()
    assert not said.pending_migrations
    assert not said.invalid_versions
    assert said.latest_applied_version == migrate.known()[-1].version


@pytest.mark.neo4j
def test_a_migration_is_applied_once_and_a_cut_off_one_again(driver: Driver, at: Address) -> None:
    wanted = (*migrate.known(), NEXT)
    driver.execute_query(NEXT.statements[0])  # cut off here, before it was recorded
    assert migrate.pending(driver, at, wanted) == (NEXT,)
    assert migrate.migrate(driver, at, wanted) == (NEXT,)
    assert migrate.migrate(driver, at, wanted) == ()
    with pytest.raises(StoreUnreadable, match=r"V900__next_thing\.cypher, which this release"):
        migrate.check(driver, at)


@pytest.mark.neo4j
def test_a_file_that_was_changed_later_is_refused_by_name(driver: Driver, at: Address) -> None:
    first, *others = migrate.known()
    changed = migrate.parsed(first.source, "CREATE INDEX x IF NOT EXISTS FOR (n:Span) ON (n.y);")
    with pytest.raises(BadUsage, match=f"{first.source} was changed after it was applied"):
        migrate.migrate(driver, at, (changed, *others))


@pytest.mark.neo4j
def test_one_client_migrates_at_a_time(driver: Driver, at: Address) -> None:
    with (
        neo4j_lock.held(driver, at.database, "migrate", ""),
        pytest.raises(StoreBusy, match="is being migrated by another process"),
        neo4j_lock.held(driver, at.database, "migrate", "it is being migrated", wait_s=1),
    ):
        pass
    assert migrate.migrate(driver, at) == ()
