// What each rank said of a collective, also where no span of it was recorded.
// parameters: collective
// columns: rank, host, seq, op, size_bytes, dtype, arrival_ns, state
MATCH (r:Rank)-[j:JOINED]->(:Collective {id: $collective})
RETURN r.rank AS rank, r.host AS host, j.seq AS seq, j.op AS op, j.size_bytes AS size_bytes,
       j.dtype AS dtype, j.arrival_ns AS arrival_ns, j.state AS state
ORDER BY rank
