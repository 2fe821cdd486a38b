// The nodes that show a finding, with the role each plays.
// parameters: finding
// columns: role, kind, id, rank, step_index, name, text, start_ns, end_ns, dur_ns, excess_ns, host, input_id
// OPTIONAL keeps the embedded engine from scanning every span before it looks at the finding.
MATCH (f:Finding {id: $finding})
OPTIONAL MATCH (f)-[e:SHOWN_BY]->(n:Span|Collective|Step|LogLine|Rank)
WITH e, n
WHERE n.id IS NOT NULL
RETURN e.role AS role, n.kind AS kind, n.id AS id, n.rank AS rank, n.step_index AS step_index,
       n.name AS name, n.text AS text, n.start_ns AS start_ns, n.end_ns AS end_ns,
       n.dur_ns AS dur_ns, n.excess_ns AS excess_ns, n.host AS host, n.input_id AS input_id
ORDER BY role, kind, id
