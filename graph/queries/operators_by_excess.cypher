// The operators of a run that cost more than they should, costliest first.
// parameters: run, limit
// columns: operator, family, layer, span_count, dur_ns, own_ns, excess_ns, max_excess_ns
MATCH (s:Span)
WHERE s.run_id = $run AND s.operator IS NOT NULL
RETURN s.operator AS operator, s.family AS family, s.layer AS layer, count(*) AS span_count,
       coalesce(sum(s.dur_ns), 0) AS dur_ns, coalesce(sum(s.own_ns), 0) AS own_ns,
       coalesce(sum(s.excess_ns), 0) AS excess_ns, max(s.excess_ns) AS max_excess_ns
ORDER BY excess_ns DESC, dur_ns DESC, operator
LIMIT $limit
