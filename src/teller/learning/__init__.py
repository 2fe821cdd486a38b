"""From labelled runs to a model and to the tables that judge it: `teller train`, `evaluate`."""
