// From a log line to the kernels that were late on another rank, the latest collective's, worst first.
// parameters: line, limit
// columns: text, rank, step_index, wait_ns, collective_id, op, skew_ns, late_rank, kernel_id, kernel, dur_ns, excess_ns, call, caller
// The line was written in a step; that step's iteration ran on other ranks too. Of the collectives
// that another rank came last to, the one with the widest gap is taken, and of that rank's step
// the device work that ended before its arrival and took longer than it should.
MATCH (l:LogLine {id: $line})-[:DURING]->(t:Step)<-[:ON_RANK]-(:Iteration)-[:ON_RANK]->(o:Step)
WHERE o.rank <> t.rank
MATCH (o)<-[:IN_STEP]-(x:Span)-[m:IN_COLLECTIVE]->(c:Collective)
WHERE c.last_rank = o.rank AND c.skew_ns > 0
WITH l, t, o, x, m, c
ORDER BY c.skew_ns DESC, c.id
LIMIT 1
MATCH (o)<-[:IN_STEP]-(k:Span)
WHERE k.stream IS NOT NULL AND k.id <> x.id AND k.end_ns <= m.arrival_ns AND k.excess_ns > 0
OPTIONAL MATCH (t)<-[:IN_STEP]-(y:Span)-[n:IN_COLLECTIVE]->(c)
OPTIONAL MATCH (a:Span)-[:LAUNCHED]->(k)
OPTIONAL MATCH (f:Span)-[:CHILD]->(a)
RETURN l.text AS text, t.rank AS rank, t.step_index AS step_index, n.wait_ns AS wait_ns,
       c.id AS collective_id, c.op AS op, c.skew_ns AS skew_ns, o.rank AS late_rank,
       k.id AS kernel_id, k.name AS kernel, k.dur_ns AS dur_ns, k.excess_ns AS excess_ns,
       a.name AS call, f.name AS caller
ORDER BY excess_ns DESC, kernel_id
LIMIT $limit
