// What was recorded of each rank, layer by layer: how many spans, and from when to when.
// parameters: run
// columns: rank, layer, span_count, start_ns, end_ns
MATCH (s:Span)
WHERE s.run_id = $run
RETURN s.rank AS rank, s.layer AS layer, count(*) AS span_count, min(s.start_ns) AS start_ns,
       max(s.end_ns) AS end_ns
ORDER BY rank, layer
