"""The readers, in the order in which they are asked."""

from typing import Final

from teller.ingest.readers import flight_recorder, kineto, nsys, nsys_dir, nsys_recipe, prometheus
from teller.ingest.source import Reader

# What is surest of its content comes first; a text log takes what no other claims.
READERS: Final[tuple[Reader, ...]] = (
    nsys,
    nsys_recipe,
    nsys_dir,
    flight_recorder,
    kineto,
    prometheus,
)
