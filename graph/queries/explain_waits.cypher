// Who waited longest for a rank that came last to a collective, within some steps.
// parameters: run, rank, first, last
// columns: collective_id, span_id, step_id, rank, wait_ns
MATCH (t:Step)<-[:IN_STEP]-(s:Span)-[x:IN_COLLECTIVE]->(c:Collective)
WHERE s.run_id = $run AND c.last_rank = $rank AND s.rank <> $rank AND s.step_index >= $first
      AND s.step_index <= $last AND x.wait_ns > 0
RETURN c.id AS collective_id, s.id AS span_id, t.id AS step_id, s.rank AS rank,
       x.wait_ns AS wait_ns
ORDER BY wait_ns DESC, span_id
LIMIT 1
