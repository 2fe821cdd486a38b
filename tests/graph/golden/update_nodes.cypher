UNWIND $rows AS r MATCH (n:Step {id: r.id}) SET n.excess_ns = r.excess_ns, n.p_abnormal = r.p_abnormal, n.phase = NULL
