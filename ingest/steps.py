"""The steps of one source: by the engine's annotations, else by what repeats, else none."""

from collections.abc import Iterator

import pyarrow as pa

from teller.ingest.annotations import annotated_steps
from teller.ingest.device_work import device_work
from teller.ingest.repeats import are_layers, repeated_kernels, repeated_ranges
from teller.ingest.source import ENGINE, FRAMEWORK
from teller.ingest.step_table import STEPS, Steps, no_steps

__all__ = ["STEPS", "Steps", "find_steps"]


def find_steps(spans: pa.Table, *, families: pa.Array | None = None) -> Steps:
    """Give the steps of one source from its spans in any order; `families` is one a span.

    Windows are the host's where `lane` is set (the annotation's), else those of device work.
    """
    if not spans.num_rows:
        return no_steps()
    whole = spans.unify_dictionaries().combine_chunks()
    annotated = annotated_steps(whole)
    if annotated is not None:
        return annotated
    for steps in _repeated(whole, families):
        if steps is not None and not are_layers(whole, steps):
            return steps
    return no_steps()


def _repeated(spans: pa.Table, families: pa.Array | None) -> Iterator[Steps | None]:
    work = device_work(spans)
    yield repeated_ranges(spans, work)
    yield repeated_kernels(spans, work, families)
    yield repeated_ranges(spans, work, (ENGINE, FRAMEWORK))
