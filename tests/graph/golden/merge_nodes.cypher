UNWIND $rows AS r MERGE (n:Host {id: r.id}) ON CREATE SET n.run_id = r.run_id, n.kind = r.kind, n.name = r.name
