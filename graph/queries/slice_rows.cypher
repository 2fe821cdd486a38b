// What decides about the spans of some steps: where they are, and how far from what they should be.
// parameters: steps
// columns: id, step_id, operator, stream, start_ns, own_ns, gap_ns, excess_ns
// Unsorted and narrow: it is all of the steps, and sorting or a text more cost a third each.
MATCH (s:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
RETURN s.id AS id, t.id AS step_id, s.operator AS operator, s.stream AS stream,
       s.start_ns AS start_ns, s.own_ns AS own_ns, s.gap_ns AS gap_ns, s.excess_ns AS excess_ns
