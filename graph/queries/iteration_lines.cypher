// The log lines that were written during an iteration, on any rank.
// parameters: iteration
// columns: id, time_ns, rank, host, process, level, text, step_index, tied_by, confidence, input_id, line
MATCH (:Iteration {id: $iteration})-[:ON_RANK]->(:Step)<-[:DURING]-(l:LogLine)
RETURN l.id AS id, l.time_ns AS time_ns, l.rank AS rank, l.host AS host, l.process AS process,
       l.level AS level, l.text AS text, l.step_index AS step_index, l.tied_by AS tied_by,
       l.confidence AS confidence, l.input_id AS input_id, l.line AS line
ORDER BY time_ns, input_id, line
