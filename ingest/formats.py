"""The readers, in the order in which they are asked."""

from typing import Final

from teller.ingest.readers import kineto, nsys, nsys_dir, nsys_recipe
from teller.ingest.source import Reader

READERS: Final[tuple[Reader, ...]] = (nsys, nsys_recipe, nsys_dir, kineto)
