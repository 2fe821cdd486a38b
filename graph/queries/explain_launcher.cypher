// The call that launched a piece of device work.
// parameters: span
// columns: span_id, name
MATCH (a:Span)-[:LAUNCHED]->(:Span {id: $span})
RETURN a.id AS span_id, a.name AS name
ORDER BY span_id
LIMIT 1
