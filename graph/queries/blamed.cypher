// The nodes that a finding blames.
// parameters: finding
// columns: kind, id, name, rank, host
MATCH (:Finding {id: $finding})-[:BLAMES]->(n:Rank|Host|Device|Link|ProcessGroup|Operator|Request)
RETURN n.kind AS kind, n.id AS id, n.name AS name, n.rank AS rank, n.host AS host
ORDER BY kind, id
