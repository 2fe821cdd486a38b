"""What the graph may hold, and where it lives."""
