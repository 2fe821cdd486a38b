// Which call launched which device work of some steps.
// parameters: steps
// columns: src, dst
MATCH (a:Span)-[:LAUNCHED]->(b:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
RETURN a.id AS src, b.id AS dst
