// For each rank, how often it was the last to come, and how long the others waited for it in sum.
// parameters: run
// columns: rank, collective_count, wait_ns, max_skew_ns
MATCH (s:Span)-[x:IN_COLLECTIVE]->(c:Collective)
WHERE c.run_id = $run AND c.last_rank IS NOT NULL AND c.skew_ns > 0
RETURN c.last_rank AS rank, count(DISTINCT c.id) AS collective_count,
       coalesce(sum(x.wait_ns), 0) AS wait_ns, max(c.skew_ns) AS max_skew_ns
ORDER BY wait_ns DESC, rank
