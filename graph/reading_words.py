"""The words that a reading query is made of, and those that it is not."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIRST: Final = ("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL")
# what may stand behind something complete
JOINING: Final = frozenset(FIRST) | _words("""
    WHERE ORDER SKIP OFFSET LIMIT UNION YIELD AND OR XOR NOT IN IS STARTS ENDS CONTAINS AS ASC
    ASCENDING DESC DESCENDING WHEN THEN ELSE END ALL ANY SHORTEST WSHORTEST TRAIL ACYCLIC PATH PATHS
    GROUP GROUPS
    """)
# those of them that are complete in themselves
ENDING: Final = _words("END ASC ASCENDING DESC DESCENDING PATH PATHS GROUP GROUPS TRAIL ACYCLIC")
# behind these something is still due
LEADING: Final = _words("NOT DISTINCT CASE WHEN THEN ELSE WITH BY MATCH WHERE ALL ANY SHORTEST")
WRITING: Final = _words("""
    CREATE MERGE SET DELETE DETACH NODETACH REMOVE FOREACH INSERT DROP ALTER LOAD COPY EXPORT
    IMPORT ATTACH INSTALL UNINSTALL UPDATE USE CHECKPOINT BEGIN COMMIT ROLLBACK GRANT REVOKE DENY
    START STOP TERMINATE KILL PROFILE SHOW COMMENT ANALYZE FINISH
    """)
# procedures that tell what there is
READERS: Final = _words("""
    show_tables table_info show_connection show_indexes show_functions db_version
    db.labels db.relationshiptypes db.propertykeys db.schema.visualization
    db.schema.nodetypeproperties db.schema.reltypeproperties db.info
    db.index.fulltext.querynodes db.index.fulltext.queryrelationships
    db.index.vector.querynodes db.index.vector.queryrelationships
    """)
FAMILIES: Final = _words("date time datetime localtime localdatetime duration point vector")
INNER: Final = _words("EXISTS COUNT COLLECT")
# where a pattern ends with one of these, as `((a)-->(b))+` does, a clause may come next
REPEATING: Final = _words("+ *")
MIDWAY: Final = _words(
    "CREATE MERGE SET DELETE DETACH NODETACH REMOVE FOREACH INSERT LOAD COPY USE FINISH"
)
