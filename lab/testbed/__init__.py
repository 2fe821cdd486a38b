"""A small LLM service on CPUs, run for real, disturbed from outside, recorded and labelled."""
