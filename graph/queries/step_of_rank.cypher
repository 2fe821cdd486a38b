// The step of that number on that rank.
// parameters: run, rank, number
// columns: id, phase, start_ns, end_ns, dur_ns, excess_ns
MATCH (t:Step) WHERE t.run_id = $run AND t.rank = $rank AND t.step_index = $number
RETURN t.id AS id, t.phase AS phase, t.start_ns AS start_ns, t.end_ns AS end_ns,
       t.dur_ns AS dur_ns, t.excess_ns AS excess_ns
ORDER BY id
