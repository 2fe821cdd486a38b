"""Schema changes of the shared store, applied once, in order."""
