UNWIND range(0, $rows - 1) AS i CREATE (:Host {id: $id[i], run_id: $run_id[i], kind: $kind[i], name: $name[i]})
