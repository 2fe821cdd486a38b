// The calls of some operators in a step that began before a time, the most above its like first.
// parameters: step, operators, before
// columns: span_id, operator, own_ns, excess_ns
MATCH (s:Span)-[:IN_STEP]->(t:Step {id: $step})
WHERE s.operator IN $operators AND s.start_ns <= $before
RETURN s.id AS span_id, s.operator AS operator, s.own_ns AS own_ns, s.excess_ns AS excess_ns
ORDER BY excess_ns DESC, own_ns DESC, span_id
LIMIT 1
