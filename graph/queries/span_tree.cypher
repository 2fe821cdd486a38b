// Everything below a span, itself included, to depth 88, each with its parent.
// parameters: span
// columns: id, parent_id, rank, name, operator, family, layer, lane, stream, start_ns, end_ns, dur_ns, self_ns, own_ns, depth, excess_ns
MATCH (:Span {id: $span})-[:CHILD|LAUNCHED*0..88]->(s:Span)
OPTIONAL MATCH (p:Span)-[:CHILD|LAUNCHED]->(s)
RETURN s.id AS id, p.id AS parent_id, s.rank AS rank, s.name AS name, s.operator AS operator,
       s.family AS family, s.layer AS layer, s.lane AS lane, s.stream AS stream,
       s.start_ns AS start_ns, s.end_ns AS end_ns, s.dur_ns AS dur_ns, s.self_ns AS self_ns,
       s.own_ns AS own_ns, s.depth AS depth, s.excess_ns AS excess_ns
ORDER BY start_ns, depth, id
