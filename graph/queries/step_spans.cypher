// The spans of a step on a timeline, without the tree.
// parameters: step
// columns: id, rank, name, operator, family, layer, lane, stream, start_ns, end_ns, dur_ns, own_ns, excess_ns, late_ns
MATCH (s:Span)-[:IN_STEP]->(:Step {id: $step})
RETURN s.id AS id, s.rank AS rank, s.name AS name, s.operator AS operator, s.family AS family,
       s.layer AS layer, s.lane AS lane, s.stream AS stream, s.start_ns AS start_ns,
       s.end_ns AS end_ns, s.dur_ns AS dur_ns, s.own_ns AS own_ns, s.excess_ns AS excess_ns,
       s.late_ns AS late_ns
ORDER BY start_ns, id
