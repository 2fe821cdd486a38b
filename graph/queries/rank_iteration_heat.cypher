// One cell for each step on each rank: how long, how much of its own making, how much too long.
// parameters: run
// columns: step_index, rank, id, start_ns, dur_ns, own_ns, excess_ns
MATCH (t:Step)
WHERE t.run_id = $run
RETURN t.step_index AS step_index, t.rank AS rank, t.id AS id, t.start_ns AS start_ns,
       t.dur_ns AS dur_ns, t.own_ns AS own_ns, t.excess_ns AS excess_ns
ORDER BY step_index, rank, start_ns
