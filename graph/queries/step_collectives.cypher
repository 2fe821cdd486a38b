// The collectives that a step took part in, when, and who came last to each.
// parameters: step
// columns: id, span_id, op, seq, size_bytes, arrival_ns, wait_ns, pure_ns, skew_ns, last_rank, ranks_seen
MATCH (:Step {id: $step})<-[:IN_STEP]-(s:Span)-[x:IN_COLLECTIVE]->(c:Collective)
RETURN c.id AS id, s.id AS span_id, c.op AS op, c.seq AS seq, c.size_bytes AS size_bytes,
       x.arrival_ns AS arrival_ns, x.wait_ns AS wait_ns, x.pure_ns AS pure_ns,
       c.skew_ns AS skew_ns, c.last_rank AS last_rank, c.ranks_seen AS ranks_seen
ORDER BY arrival_ns, span_id
