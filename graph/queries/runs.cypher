// The runs that are in the graph, oldest first.
// parameters:
// columns: id, name, deployment, t0_epoch_ns, start_ns, end_ns, world_size, engine, model, baseline
MATCH (r:Run)
RETURN r.run_id AS id, r.name AS name, r.deployment AS deployment, r.t0_epoch_ns AS t0_epoch_ns,
       r.start_ns AS start_ns, r.end_ns AS end_ns, r.world_size AS world_size,
       r.engine AS engine, r.model AS model, r.baseline AS baseline
ORDER BY t0_epoch_ns, id
