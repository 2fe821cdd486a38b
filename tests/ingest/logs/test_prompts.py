"""Prompts and answers leave the messages in which engines log them; the figures stay."""

import pyarrow as pa
import pytest

from teller.ingest.logs.prompts import without_prompts

FINISH = (
    "Finish: obj=GenerateReqInput(text='a SECRET', rid='r1', input_ids=[77, 78]), out={'text': "
    "\"it's SECRET\", 'output_ids': [77], 'meta_info': {'id': 'r1', 'finish_reason': {'type': "
    "'stop', 'matched': 2}, 'prompt_tokens': 12, 'completion_tokens': 100, 'e2e_latency': 1.5}}"
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Received request cmpl-1: prompt: 'a SECRET, params: SECRET', params: "
            "SamplingParams(n=1), prompt_token_ids: [77, 78], lora_request: None.",
            ["Received request cmpl-1: ", "params: SamplingParams(n=1)", "lora_request: None"],
        ),
        ("Received request cmpl-1: prompt: 'a SECRET\nand it goes on, SECRET", ["cmpl-1"]),
        ("NewRequestData(req_id=a-1,prompt_token_ids=[77, 78],mm=[])", ["req_id=a-1", "mm=[]"]),
        ("Receive: obj=GenerateReqInput(rid='r1', text='SECRET', input_ids=[77])", ["rid='r1'"]),
        (FINISH, ["rid='r1'", "'prompt_tokens': 12", "'completion_tokens': 100", "'stop'"]),
        (
            FINISH.replace("'e2e", "'output_token_logprobs': [(-0.1, 77, 'SECRET')], 'e2e"),
            ["rid='r1'", "'completion_tokens': 100"],
        ),
        (FINISH[:150], ["rid='r1'"]),
    ],
)
def test_what_was_asked_is_gone_and_the_rest_stays(text: str, kept: list[str]) -> None:
    (said,) = without_prompts(pa.array([text])).to_pylist()
    assert "SECRET" not in said
    assert "77" not in said
    assert all(words in said for words in kept)


def test_other_messages_stay_as_they_are() -> None:
    text = pa.array(["Engine 000: Running: 1 reqs", None, "prompt: hello"])
    assert without_prompts(text).equals(text)
