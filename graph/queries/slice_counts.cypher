// How often each operator runs in some steps.
// parameters: steps
// columns: step_id, operator, span_count
MATCH (s:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
RETURN t.id AS step_id, s.operator AS operator, count(*) AS span_count
ORDER BY step_id, operator
