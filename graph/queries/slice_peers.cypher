// The steps to count by: those of all ranks in the same iteration, its own with them.
// parameters: steps
// columns: step_id, peer_id, rank
MATCH (t:Step)<-[:ON_RANK]-(i:Iteration) WHERE t.id IN $steps
MATCH (i)-[:ON_RANK]->(u:Step)
RETURN t.id AS step_id, u.id AS peer_id, u.rank AS rank
ORDER BY step_id, rank, peer_id
