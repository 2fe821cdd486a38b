// The iteration that a step belongs to.
// parameters: step
// columns: id, step_index, start_ns, end_ns, dur_ns, skew_ns, last_rank
MATCH (i:Iteration)-[:ON_RANK]->(t:Step {id: $step})
RETURN i.id AS id, i.step_index AS step_index, i.start_ns AS start_ns, i.end_ns AS end_ns,
       i.dur_ns AS dur_ns, i.skew_ns AS skew_ns, i.last_rank AS last_rank
ORDER BY id
