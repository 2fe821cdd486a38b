// All spans of a step, host and device, each with the span that called or launched it.
// parameters: step
// columns: id, parent_id, rank, name, operator, family, layer, lane, stream, start_ns, end_ns, dur_ns, self_ns, own_ns, gap_ns, depth, size_bytes, excess_ns, late_ns
// A parent outside the step is not told: parent_id is null at the tops. One hop for each span is
// enough, however deep the tree, since every span of a step is joined to it.
MATCH (s:Span)-[:IN_STEP]->(t:Step {id: $step})
OPTIONAL MATCH (s)<-[:CHILD|LAUNCHED]-(p:Span)-[:IN_STEP]->(t)
RETURN s.id AS id, p.id AS parent_id, s.rank AS rank, s.name AS name, s.operator AS operator,
       s.family AS family, s.layer AS layer, s.lane AS lane, s.stream AS stream,
       s.start_ns AS start_ns, s.end_ns AS end_ns, s.dur_ns AS dur_ns, s.self_ns AS self_ns,
       s.own_ns AS own_ns, s.gap_ns AS gap_ns, s.depth AS depth, s.size_bytes AS size_bytes,
       s.excess_ns AS excess_ns, s.late_ns AS late_ns
ORDER BY start_ns, depth, id
