"""Templates: the same sentence with other figures is one template."""

import json

import pyarrow as pa

from teller.ingest.logs import templates
from teller.ingest.logs.templates import Miner, parameters


def test_other_figures_and_other_words_in_one_place_are_one_template() -> None:
    text = pa.array([
        "Added request cmpl-12ab for model one in 0.5 s",
        "Added request cmpl-99ff for model two in 12.75 s",
        "Server is ready",
        "Added request cmpl-aa00 for model one in 7 s\nwith more",
    ])  # fmt: skip
    miner = Miner()
    number = miner.mine(text)
    assert number.to_pylist() == [0, 0, 1, 0]
    assert miner.texts == ["Added request cmpl-<*> for model <*> in <*> s", "Server is ready"]
    found = parameters(text, number, miner.texts).to_pylist()
    assert json.loads(found[1]) == ["99ff", "two", "12.75"]
    assert found[2] is None


def test_signs_of_json_in_a_parameter_are_kept() -> None:
    text = pa.array(['open "C:\\x1" failed', 'open "D:\\y2" failed', "open '3' failed"])
    miner = Miner()
    found = parameters(text, miner.mine(text), miner.texts)
    assert [json.loads(f) for f in found.to_pylist()] == [['"C:\\x1"'], ['"D:\\y2"'], ["'3'"]]


def test_numbers_of_templates_are_bounded_whatever_the_log_says() -> None:
    miner = Miner()
    words = [f"{a}{b}{c} went {c}{a}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"
             for c in "abcdefghijklmnopqrstuvwxyz"]  # fmt: skip
    number = miner.mine(pa.array(words))
    assert len(miner.texts) <= templates.MOST + 1
    assert "<*> <*> <*>" in miner.texts
    assert len(number) == len(words)


def test_later_blocks_know_earlier_templates() -> None:
    miner = Miner()
    first = miner.mine(pa.array(["step 1 took 2 ms"]))
    assert miner.mine(pa.array(["step 2 took 3 ms"])).to_pylist() == first.to_pylist()
    assert miner.texts == ["step <*> took <*> ms"]
