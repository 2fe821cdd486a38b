// The collectives of some steps, each as the step's rank met it.
// parameters: steps
// columns: step_id, span_id, collective_id, arrival_ns, host_arrival_ns, wait_ns, end_ns, late_ns
MATCH (t:Step)<-[:IN_STEP]-(s:Span)-[x:IN_COLLECTIVE]->(c:Collective) WHERE t.id IN $steps
RETURN t.id AS step_id, s.id AS span_id, c.id AS collective_id, x.arrival_ns AS arrival_ns,
       x.host_arrival_ns AS host_arrival_ns, x.wait_ns AS wait_ns, s.end_ns AS end_ns,
       s.late_ns AS late_ns
ORDER BY step_id, arrival_ns, span_id
