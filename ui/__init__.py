"""Draws what the store holds, and never computes."""
