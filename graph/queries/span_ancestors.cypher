// The chain of spans that called or launched a span, nearest first.
// parameters: span
// columns: id, distance, rank, name, operator, layer, lane, start_ns, end_ns, dur_ns
MATCH p = (a:Span)-[:CHILD|LAUNCHED*1..88]->(:Span {id: $span})
RETURN a.id AS id, length(p) AS distance, a.rank AS rank, a.name AS name, a.operator AS operator,
       a.layer AS layer, a.lane AS lane, a.start_ns AS start_ns, a.end_ns AS end_ns,
       a.dur_ns AS dur_ns
ORDER BY distance
