// The iterations that served a request, the slowest first.
// parameters: request
// columns: id, step_index, start_ns, end_ns, dur_ns, skew_ns, last_rank, tied_by, confidence
MATCH (:Request {id: $request})-[s:SERVED_IN]->(i:Iteration)
RETURN i.id AS id, i.step_index AS step_index, i.start_ns AS start_ns, i.end_ns AS end_ns,
       i.dur_ns AS dur_ns, i.skew_ns AS skew_ns, i.last_rank AS last_rank,
       s.tied_by AS tied_by, s.confidence AS confidence
ORDER BY dur_ns DESC, step_index
