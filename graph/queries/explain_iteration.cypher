// The iteration that a step is part of.
// parameters: step
// columns: iteration_id
MATCH (i:Iteration)-[:ON_RANK]->(:Step {id: $step})
RETURN i.id AS iteration_id
ORDER BY iteration_id
LIMIT 1
