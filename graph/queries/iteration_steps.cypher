// The steps of an iteration, one a rank.
// parameters: iteration
// columns: id, rank, step_index, phase, start_ns, end_ns, dur_ns, own_ns, excess_ns, token_count, batch_size
MATCH (:Iteration {id: $iteration})-[:ON_RANK]->(t:Step)
RETURN t.id AS id, t.rank AS rank, t.step_index AS step_index, t.phase AS phase,
       t.start_ns AS start_ns, t.end_ns AS end_ns, t.dur_ns AS dur_ns, t.own_ns AS own_ns,
       t.excess_ns AS excess_ns, t.token_count AS token_count, t.batch_size AS batch_size
ORDER BY rank
