// The requests of a run, in order of time.
// parameters: run
// columns: id, name, start_ns, first_token_ns, end_ns, prompt_tokens, output_tokens, ttft_ns, itl_p50_ns, queue_ns, preemptions, status, told_by
MATCH (q:Request)
WHERE q.run_id = $run
RETURN q.id AS id, q.name AS name, q.start_ns AS start_ns, q.first_token_ns AS first_token_ns,
       q.end_ns AS end_ns, q.prompt_tokens AS prompt_tokens, q.output_tokens AS output_tokens,
       q.ttft_ns AS ttft_ns, q.itl_p50_ns AS itl_p50_ns, q.queue_ns AS queue_ns,
       q.preemptions AS preemptions, q.status AS status, q.told_by AS told_by
ORDER BY start_ns, name
