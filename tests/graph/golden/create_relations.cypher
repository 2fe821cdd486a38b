UNWIND $rows AS r MATCH (a:Span {id: r.src}) MATCH (b:Span {id: r.dst}) CREATE (a)-[:NEXT {gap_ns: r.gap_ns}]->(b)
