// The step, the rank and the host that a log line hangs on.
// parameters: line
// columns: step_id, rank_id, host_id
MATCH (l:LogLine {id: $line})
OPTIONAL MATCH (l)-[:DURING]->(t:Step)
OPTIONAL MATCH (l)-[:FROM_RANK]->(r:Rank)
OPTIONAL MATCH (l)-[:FROM_HOST]->(h:Host)
RETURN t.id AS step_id, r.id AS rank_id, h.id AS host_id
ORDER BY step_id, rank_id, host_id
LIMIT 1
