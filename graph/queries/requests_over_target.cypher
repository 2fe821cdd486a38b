// The requests of a run that took longer than a target, the longest wait first.
// parameters: run, ttft_ns, itl_ns, e2e_ns
// columns: id, name, start_ns, ttft_ns, itl_p50_ns, e2e_ns
MATCH (q:Request)
WHERE q.run_id = $run
      AND (q.ttft_ns > $ttft_ns OR q.itl_p50_ns > $itl_ns OR q.end_ns - q.start_ns > $e2e_ns)
RETURN q.id AS id, q.name AS name, q.start_ns AS start_ns, q.ttft_ns AS ttft_ns,
       q.itl_p50_ns AS itl_p50_ns, q.end_ns - q.start_ns AS e2e_ns
ORDER BY ttft_ns DESC, e2e_ns DESC, name
