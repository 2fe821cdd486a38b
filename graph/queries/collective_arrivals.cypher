// Who came when to a collective, first to arrive first.
// parameters: collective
// columns: id, rank, arrival_ns, host_arrival_ns, wait_ns, pure_ns, arrival_order, end_ns, step_index
MATCH (s:Span)-[x:IN_COLLECTIVE]->(:Collective {id: $collective})
RETURN s.id AS id, s.rank AS rank, x.arrival_ns AS arrival_ns,
       x.host_arrival_ns AS host_arrival_ns, x.wait_ns AS wait_ns, x.pure_ns AS pure_ns,
       x.arrival_order AS arrival_order, s.end_ns AS end_ns, s.step_index AS step_index
ORDER BY arrival_ns, rank, id
