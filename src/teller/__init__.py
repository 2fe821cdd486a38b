"""Find the root cause of slow, uneven or hung multi-node LLM inference from its traces."""

__version__ = "0.1.0"
