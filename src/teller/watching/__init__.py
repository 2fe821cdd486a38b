"""Watch a folder: what appears or grows is ingested and diagnosed, and what is new is told."""
