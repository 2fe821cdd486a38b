// The step that a span ran in, and the iteration of that step.
// parameters: span
// columns: step_id, iteration_id
MATCH (:Span {id: $span})-[:IN_STEP]->(t:Step)
OPTIONAL MATCH (i:Iteration)-[:ON_RANK]->(t)
RETURN t.id AS step_id, i.id AS iteration_id
ORDER BY step_id
LIMIT 1
