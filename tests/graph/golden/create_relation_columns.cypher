UNWIND range(0, $rows - 1) AS i MATCH (a:Span {id: $src[i]}) MATCH (b:Span {id: $dst[i]}) CREATE (a)-[:NEXT {gap_ns: $gap_ns[i]}]->(b)
