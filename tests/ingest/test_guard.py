"""What a reader let through goes no further."""

from dataclasses import replace

import pyarrow as pa

from teller.ingest.guard import cleared, guarded
from teller.ingest.records import SAMPLES, Records
from teller.ingest.source import WORDS, Facts, Gpu, Group, Reading, Remark

SECRET = "https://u:Zx81pw@h.org"


def test_text_is_cleared_wherever_a_reading_holds_it() -> None:
    facts = Facts(
        SECRET,
        "log",
        groups=(Group("0", desc=SECRET),),
        gpus=(Gpu(0, SECRET),),
        options={"url": SECRET},
    )
    row = {"name": "engine.option", "text": SECRET, "value": 1.0}
    samples = pa.Table.from_pylist([row], SAMPLES)
    reading = Reading(
        (), (Remark("a", SECRET, SECRET, ""),), (Records(facts, "none", samples=samples),)
    )
    told = guarded(reading)
    assert "Zx81pw" not in repr(told) + str(told.records[0].samples.to_pylist())
    assert told.records[0].samples.schema == SAMPLES
    assert told.records[0].facts.groups[0].desc == "https://<redacted>@h.org"


def test_what_holds_no_secret_is_the_same_table() -> None:
    records = Records(Facts("a", "log"), "none")
    clean = Reading((), (), (records,))
    assert guarded(clean).records[0].lines.equals(records.lines)
    assert cleared([1, None, "a", ("b",)]) == [1, None, "a", ("b",)]


def test_two_words_that_become_one_share_a_number() -> None:
    words = pa.array([SECRET, "https://v:Qy@h.org", "a"]).dictionary_encode().cast(WORDS)
    lines = Records(Facts("a", "log"), "none").lines
    size = len(words)
    columns = [words if f.name == "process" else pa.nulls(size, f.type) for f in lines.schema]
    made = pa.table(columns, schema=lines.schema)
    reading = Reading((), (), (replace(Records(Facts("a", "log"), "none"), lines=made),))
    told = guarded(reading).records[0].lines["process"].combine_chunks()
    assert told.dictionary.to_pylist() == ["https://<redacted>@h.org", "a"]
    assert told.indices.to_pylist() == [0, 0, 1]
