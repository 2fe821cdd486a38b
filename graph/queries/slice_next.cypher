// The order of the device work of some steps on its streams.
// parameters: steps
// columns: src, dst
MATCH (a:Span)-[:NEXT]->(b:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
RETURN a.id AS src, b.id AS dst
