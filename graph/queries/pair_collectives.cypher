// The collectives of a kind that two ranks of a group both took part in, the most uneven first.
// parameters: run, first, second, op, limit
// columns: id, seq, size_bytes, start_ns, end_ns, skew_ns, pure_ns, last_rank, step_index, first_arrival_ns, second_arrival_ns
MATCH (a:Span)-[x:IN_COLLECTIVE]->(c:Collective)<-[y:IN_COLLECTIVE]-(b:Span)
WHERE c.run_id = $run AND c.op = $op AND a.rank = $first AND b.rank = $second
      AND a.id <> b.id
RETURN c.id AS id, c.seq AS seq, c.size_bytes AS size_bytes, c.start_ns AS start_ns,
       c.end_ns AS end_ns, c.skew_ns AS skew_ns, c.pure_ns AS pure_ns, c.last_rank AS last_rank,
       a.step_index AS step_index, x.arrival_ns AS first_arrival_ns,
       y.arrival_ns AS second_arrival_ns
ORDER BY skew_ns DESC, id LIMIT $limit
