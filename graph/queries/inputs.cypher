// What was read for a run.
// parameters: run
// columns: id, path, format, rank, host, event_count, used, note
MATCH (i:Input)
WHERE i.run_id = $run
RETURN i.id AS id, i.path AS path, i.format AS format, i.rank AS rank, i.host AS host,
       i.event_count AS event_count, i.used AS used, i.note AS note
ORDER BY path, id
