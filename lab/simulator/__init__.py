"""A GPU cluster that serves a language model, simulated from causes, in the formats of tools."""
