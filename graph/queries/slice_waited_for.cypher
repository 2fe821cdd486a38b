// What the calls of some steps waited for.
// parameters: steps
// columns: src, dst
MATCH (b:Span)<-[:WAITED_FOR]-(a:Span)-[:IN_STEP]->(t:Step) WHERE t.id IN $steps
RETURN a.id AS src, b.id AS dst
