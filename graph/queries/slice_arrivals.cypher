// When every rank arrived, for the collectives that cost some steps more than a share of their time.
// parameters: steps, share
// columns: step_id, collective_id, op, seq, size_bytes, skew_ns, last_rank, span_id, own_step_id, rank, arrival_ns, host_arrival_ns, wait_ns, pure_ns, arrival_order
// It cost a step time if its rank waited there, or was late to it. The second MATCH may find the
// step's own span again: that rank is one of those that arrived.
MATCH (t:Step)<-[:IN_STEP]-(s:Span)-[x:IN_COLLECTIVE]->(c:Collective)
WHERE t.id IN $steps AND (x.wait_ns > $share * t.dur_ns OR s.late_ns > $share * t.dur_ns)
WITH DISTINCT t, c
MATCH (o:Span)-[y:IN_COLLECTIVE]->(c)
OPTIONAL MATCH (o)-[:IN_STEP]->(u:Step)
RETURN t.id AS step_id, c.id AS collective_id, c.op AS op, c.seq AS seq,
       c.size_bytes AS size_bytes, c.skew_ns AS skew_ns, c.last_rank AS last_rank,
       o.id AS span_id, u.id AS own_step_id, o.rank AS rank, y.arrival_ns AS arrival_ns,
       y.host_arrival_ns AS host_arrival_ns, y.wait_ns AS wait_ns, y.pure_ns AS pure_ns,
       y.arrival_order AS arrival_order
ORDER BY step_id, collective_id, arrival_ns, span_id
