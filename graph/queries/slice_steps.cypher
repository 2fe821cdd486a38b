// The steps that slices are asked for, or that a slice reaches, with what they are held against.
// parameters: steps
// columns: id, run_id, rank, step_index, phase, start_ns, end_ns, dur_ns, excess_ns
MATCH (t:Step) WHERE t.id IN $steps
RETURN t.id AS id, t.run_id AS run_id, t.rank AS rank, t.step_index AS step_index,
       t.phase AS phase, t.start_ns AS start_ns, t.end_ns AS end_ns, t.dur_ns AS dur_ns,
       t.excess_ns AS excess_ns
ORDER BY id
