// The collective of some steps that took longest once all ranks were there, and a span in it.
// parameters: run, ranks, first, last
// columns: collective_id, span_id, step_id, pure_ns
MATCH (t:Step)<-[:IN_STEP]-(s:Span)-[:IN_COLLECTIVE]->(c:Collective)
WHERE s.run_id = $run AND s.rank IN $ranks AND s.step_index >= $first AND s.step_index <= $last
      AND c.pure_ns IS NOT NULL AND c.ranks_seen > 1
RETURN c.id AS collective_id, s.id AS span_id, t.id AS step_id, c.pure_ns AS pure_ns
ORDER BY pure_ns DESC, span_id
LIMIT 1
