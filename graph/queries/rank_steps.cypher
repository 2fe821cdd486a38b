// The steps of a rank, in order.
// parameters: run, rank
// columns: id, step_index, phase, start_ns, end_ns, dur_ns, own_ns, excess_ns, token_count, batch_size, context_tokens
MATCH (t:Step)
WHERE t.run_id = $run AND t.rank = $rank
RETURN t.id AS id, t.step_index AS step_index, t.phase AS phase, t.start_ns AS start_ns,
       t.end_ns AS end_ns, t.dur_ns AS dur_ns, t.own_ns AS own_ns, t.excess_ns AS excess_ns,
       t.token_count AS token_count, t.batch_size AS batch_size,
       t.context_tokens AS context_tokens
ORDER BY step_index, start_ns, id
