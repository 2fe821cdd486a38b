// The step with the largest excess among some steps of some ranks, and its iteration.
// parameters: run, ranks, first, last
// columns: step_id, iteration_id, rank, step_index, excess_ns, end_ns
MATCH (i:Iteration)-[:ON_RANK]->(t:Step)
WHERE t.run_id = $run AND t.rank IN $ranks AND t.step_index >= $first AND t.step_index <= $last
      AND t.excess_ns IS NOT NULL
RETURN t.id AS step_id, i.id AS iteration_id, t.rank AS rank, t.step_index AS step_index,
       t.excess_ns AS excess_ns, t.end_ns AS end_ns
ORDER BY excess_ns DESC, step_id
LIMIT 1
