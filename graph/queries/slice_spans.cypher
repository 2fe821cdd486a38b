// The spans of a slice, by their ids.
// parameters: spans
// columns: id, rank, name, operator, family, layer, lane, stream, start_ns, end_ns, dur_ns, self_ns, own_ns, gap_ns, depth, size_bytes, excess_ns, late_ns
// UNWIND and a key is a look-up for each; a list behind IN would be compared with every span.
UNWIND $spans AS wanted
MATCH (s:Span {id: wanted})
RETURN s.id AS id, s.rank AS rank, s.name AS name, s.operator AS operator, s.family AS family,
       s.layer AS layer, s.lane AS lane, s.stream AS stream, s.start_ns AS start_ns,
       s.end_ns AS end_ns, s.dur_ns AS dur_ns, s.self_ns AS self_ns, s.own_ns AS own_ns,
       s.gap_ns AS gap_ns, s.depth AS depth, s.size_bytes AS size_bytes,
       s.excess_ns AS excess_ns, s.late_ns AS late_ns
