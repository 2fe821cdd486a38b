// The targets that are set for the requests of a run.
// parameters: run
// columns: name, target_ns
MATCH (q:Sample)
WHERE q.run_id = $run AND q.name IN ['slo.ttft_ns', 'slo.itl_ns', 'slo.e2e_ns']
RETURN q.name AS name, q.value AS target_ns
ORDER BY name
