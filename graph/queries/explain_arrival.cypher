// A rank's part in a collective, with the step that it ran in.
// parameters: collective, rank
// columns: span_id, step_id, arrival_ns
MATCH (s:Span)-[x:IN_COLLECTIVE]->(:Collective {id: $collective})
WHERE s.rank = $rank
OPTIONAL MATCH (s)-[:IN_STEP]->(t:Step)
RETURN s.id AS span_id, t.id AS step_id, x.arrival_ns AS arrival_ns
ORDER BY span_id
LIMIT 1
