"""From what happened to files, as the tools of hosts and engines write them."""
