// The findings of all runs, to tell incidents from.
// parameters:
// columns: id, run_id, class, severity, detail
MATCH (f:Finding)
RETURN f.id AS id, f.run_id AS run_id, f.class AS class, f.severity AS severity,
       f.detail AS detail
ORDER BY run_id, id
