"""The peer, run by the Python of its own environment: `peer.py parse|ask FOLDER`."""

import json
import sys


def main() -> None:
    """Parse a folder; with `ask`, give the stragglers it names, as JSON in the last line."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found] # it lives in an environment of its own

    what, folder = sys.argv[1:]
    analysis = TraceAnalysis(trace_dir=folder)
    if what == "ask":
        named = analysis.get_potential_stragglers()
        sys.stdout.write("\n" + json.dumps([int(rank) for rank in named]) + "\n")


if __name__ == "__main__":
    main()
