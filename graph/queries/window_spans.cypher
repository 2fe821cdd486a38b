// The spans of some steps in a window of time that are long enough to be seen.
// parameters: steps, from_ns, to_ns, least_ns
// columns: id, rank, name, operator, family, layer, lane, stream, start_ns, dur_ns, depth, excess_ns, late_ns
// What a span must be comes behind WITH: else the embedded engine looks at every span first.
MATCH (s:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
WITH s
WHERE s.dur_ns >= $least_ns AND s.start_ns < $to_ns AND s.end_ns >= $from_ns
RETURN s.id AS id, s.rank AS rank, s.name AS name, s.operator AS operator, s.family AS family,
       s.layer AS layer, s.lane AS lane, s.stream AS stream, s.start_ns AS start_ns,
       s.dur_ns AS dur_ns, s.depth AS depth, s.excess_ns AS excess_ns, s.late_ns AS late_ns
ORDER BY rank, start_ns, depth, id
