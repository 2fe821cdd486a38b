// The device work that a span launched, itself or through what it called.
// parameters: span
// columns: id, call_id, rank, name, operator, family, lane, stream, start_ns, end_ns, dur_ns, own_ns, excess_ns
MATCH (:Span {id: $span})-[:CHILD|LAUNCHED*1..88]->(s:Span)
WHERE s.stream IS NOT NULL
OPTIONAL MATCH (k:Span)-[:LAUNCHED]->(s)
RETURN s.id AS id, k.id AS call_id, s.rank AS rank, s.name AS name, s.operator AS operator,
       s.family AS family, s.lane AS lane, s.stream AS stream, s.start_ns AS start_ns,
       s.end_ns AS end_ns, s.dur_ns AS dur_ns, s.own_ns AS own_ns, s.excess_ns AS excess_ns
ORDER BY start_ns, id
