// The findings of a run, costliest first.
// parameters: run
// columns: id, class, case_class, title, severity, confidence, culprit_kind, culprit, components, excess_ns, share, text, start_ns, end_ns, ruleset, detail
MATCH (f:Finding)
WHERE f.run_id = $run
RETURN f.id AS id, f.class AS class, f.case_class AS case_class, f.title AS title,
       f.severity AS severity, f.confidence AS confidence, f.culprit_kind AS culprit_kind,
       f.culprit AS culprit, f.components AS components, f.excess_ns AS excess_ns,
       f.share AS share, f.text AS text, f.start_ns AS start_ns, f.end_ns AS end_ns,
       f.ruleset AS ruleset, f.detail AS detail
ORDER BY excess_ns DESC, confidence DESC, id
