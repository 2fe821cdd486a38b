"""Makes labelled runs: the simulator and the testbed."""
