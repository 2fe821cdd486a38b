"""Files to tables: one reader per source, one module per join."""
