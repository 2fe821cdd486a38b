// The step that a span ran in, for a link to it.
// parameters: span
// columns: id, rank, step_index, name, start_ns, end_ns, step_id
MATCH (s:Span {id: $span})
OPTIONAL MATCH (s)-[:IN_STEP]->(t:Step)
RETURN s.id AS id, s.rank AS rank, s.step_index AS step_index, s.name AS name,
       s.start_ns AS start_ns, s.end_ns AS end_ns, t.id AS step_id
ORDER BY step_id
