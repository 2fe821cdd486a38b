"""The last gate: no reading passes with a secret in it, whichever reader gave it.

Readers leave out what they know to be secret. Words of programs can hold anything, so all text that
is about to be kept is looked through once more, each distinct word of a column once.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa

from teller.graph.secrets import redact
from teller.ingest.records import TABLES, Records
from teller.ingest.source import Reading, Source


def guarded(reading: Reading) -> Reading:
    """Give a reading without secrets."""
    return Reading(
        tuple(map(_source, reading.sources)),
        cleared(reading.remarks),
        tuple(map(_records, reading.records)),
    )


def cleared(said: Any) -> Any:
    """Give text, or whatever holds text, without secrets."""
    if isinstance(said, str):
        return redact(said)
    if isinstance(said, Mapping):
        return {cleared(key): cleared(value) for key, value in said.items()}
    if isinstance(said, tuple | list):
        return type(said)(map(cleared, said))
    if is_dataclass(said) and not isinstance(said, type):
        return replace(said, **{f.name: cleared(getattr(said, f.name)) for f in fields(said)})
    return said


def _source(source: Source) -> Source:
    return Source(cleared(source.facts), _table(source.spans), _table(source.calls))


def _records(records: Records) -> Records:
    tables = {name: _table(getattr(records, name)) for name in TABLES}
    return replace(records, facts=cleared(records.facts), **tables)


def _table(table: pa.Table) -> pa.Table:
    for at, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            chunks = [_chunk(chunk) for chunk in table[column.name].chunks]
            table = table.set_column(at, column, pa.chunked_array(chunks, column.type))
    return table


def _chunk(chunk: pa.Array) -> pa.Array:
    coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    words = redact(coded.dictionary)
    if words is coded.dictionary:
        return chunk
    told = words.take(coded.indices)
    # two words may be one now
    return told.dictionary_encode().cast(chunk.type) if coded is chunk else told
