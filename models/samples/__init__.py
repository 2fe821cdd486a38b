"""Iterations as small graphs of numbers and words: what the root-cause model looks at."""
