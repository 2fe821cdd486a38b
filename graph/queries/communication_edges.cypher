// Who exchanged data with whom: the communication graph of a run.
// parameters: run
// columns: src_rank, dst_rank, src_host, dst_host, group_name, op, count, size_bytes, pure_p50_ns, pure_p99_ns, transport
MATCH (a:Rank)-[t:TALKED_TO]->(b:Rank)
WHERE a.run_id = $run
RETURN a.rank AS src_rank, b.rank AS dst_rank, a.host AS src_host, b.host AS dst_host,
       t.group_name AS group_name, t.op AS op, t.count AS count, t.size_bytes AS size_bytes,
       t.pure_p50_ns AS pure_p50_ns, t.pure_p99_ns AS pure_p99_ns, t.transport AS transport
ORDER BY src_rank, dst_rank, group_name, op
