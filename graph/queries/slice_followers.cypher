// The steps to count by where a rank is alone: the one before and the one behind, of the same phase.
// parameters: steps
// columns: step_id, peer_id, rank
MATCH (t:Step)-[:FOLLOWED_BY]-(u:Step) WHERE t.id IN $steps AND u.phase = t.phase
RETURN t.id AS step_id, u.id AS peer_id, u.rank AS rank
ORDER BY step_id, peer_id
