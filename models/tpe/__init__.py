"""Trace Pair Encoding: byte-pair encoding for the call trees of steps."""
