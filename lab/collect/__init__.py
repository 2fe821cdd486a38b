"""Recording of a running service into a run folder, with what the machine has."""
