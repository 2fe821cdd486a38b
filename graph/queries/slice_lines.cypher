// The log lines that were written during some steps, each with its template and the span it fell in.
// parameters: steps
// columns: step_id, id, span_id, template_id, template, time_ns, rank, host, level, text, tied_by, confidence
MATCH (t:Step)<-[:DURING]-(l:LogLine) WHERE t.id IN $steps
OPTIONAL MATCH (l)-[:MATCHES]->(m:LogTemplate)
OPTIONAL MATCH (l)-[:INSIDE]->(s:Span)
RETURN t.id AS step_id, l.id AS id, s.id AS span_id, m.id AS template_id, m.text AS template,
       l.time_ns AS time_ns, l.rank AS rank, l.host AS host, l.level AS level, l.text AS text,
       l.tied_by AS tied_by, l.confidence AS confidence
ORDER BY time_ns, id
