// What a side fact is about.
// parameters: sample
// columns: kind, id
MATCH (:Sample {id: $sample})-[:ABOUT]->(n:Rank|Host|Device|Link)
RETURN n.kind AS kind, n.id AS id
ORDER BY kind, id
