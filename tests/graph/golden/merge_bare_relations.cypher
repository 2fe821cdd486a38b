UNWIND $rows AS r MATCH (a:Span {id: r.src}) MATCH (b:Span {id: r.dst}) MERGE (a)-[x:CHILD]->(b)
