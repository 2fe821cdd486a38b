// What was wrong with the inputs of a run, and what to do.
// parameters: run
// columns: id, path, place, text, remedy, input_id
MATCH (m:Remark)
WHERE m.run_id = $run
OPTIONAL MATCH (m)-[:ON_INPUT]->(i:Input)
RETURN m.id AS id, m.path AS path, m.place AS place, m.text AS text, m.remedy AS remedy,
       i.id AS input_id
ORDER BY path, place, id
