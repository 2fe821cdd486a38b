"""Secrets never come out, and what is none stays."""

import string

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller.graph.secrets import redact

PLACES = (
    "api_key='{}'",
    "{{'api_key': ['{}', 'b'], 'model': 'x'}}",
    '{{"api_key": "{}"}}',
    '{{\\"api_key\\": \\"{}\\"}}',
    "--api-key {} --port 8000",
    "--api-key={}",
    "['--api-key', '{}', '--port', '1']",
    "--hf-token {}",
    "[INFO] API Key: {}",
    "HF_TOKEN={} python serve.py",
    "export AWS_SECRET_ACCESS_KEY={}",
    "NCCL_SECRET_X set by environment to {}.",
    "'WANDB_API_KEY': '{}'",
    "name: HF_TOKEN, value: {}",
    "password: {}",
    "DB_PASSWORD={};",
    "client_secret={}&grant=1",
    "GET /v1?api_key={}&x=1",
    "GET /v1?access_token={} HTTP/1.1",
    "Authorization: Bearer {}",
    "{{'Authorization': 'Bearer {}'}}",
    "authorization=Basic {}",
    "x-api-key: {}",
    "Cookie: session={}; theme=dark",
    "https://user:{}@example.org/path",
    "https://{}@github.com/a/b.git",
    "git+https://{}/x@github.com/a/b.git",
    "https://ab%2F{}@10.0.0.1:8080/",
    "postgres://u:{}@10.0.0.1:5432/db",
    "credentials={}",
    "https://h.org/v1?sig={}&x=1",
    "GET /m?a=b&X-Amz-Security-Token={} HTTP/1.1",
    "https://hooks.slack.com/services/T01/B02/{}",
    "private_key={}",
    "passphrase = {}",
    "token={}",
)
FORMS = (
    "hf_AbCdEfGhIjKlMnOpQrStUv12", "sk-proj-abc123DEF456",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "nvapi-abcdefghij1234567890", "glpat-abcdefghij1234567890", "xoxb-123456789012-abcdef",
)  # fmt: skip
SECRET = st.builds(
    lambda a, rest: a + rest,
    st.sampled_from(string.ascii_letters),
    st.text(string.ascii_letters + string.digits + "_-+/.~", min_size=11, max_size=40),
)


@settings(deadline=None)  # the first call compiles the patterns
@given(SECRET, st.sampled_from(PLACES))
def test_a_planted_secret_never_comes_out(secret: str, place: str) -> None:
    secret = secret.replace(".", "-") if "{}/" in place else secret  # else it may be a host
    text = f"before {place.format(secret)} behind"
    told = redact(text)
    assert secret not in told
    assert told.startswith("before ")
    assert secret not in redact(pa.array(["x", text, None]))[1].as_py()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["{}", "got {} from env", "('{}',)", "key {}."])
def test_a_secret_is_known_by_its_form(form: str, place: str) -> None:
    assert form not in redact(place.format(form))


@pytest.mark.parametrize(
    "text",
    [
        "Decode batch. #running-req: 24, #token: 51200, token usage: 0.21, throughput (token/s)",
        "Avg prompt throughput: 0.0 tokens/s, Running: 1 reqs",
        "tokenizer='meta-llama/Llama-3', eos_token='</s>', pad_token_id=0, max_tokens=16",
        "num_key_value_heads=8, key_cache=3, max_num_batched_tokens=2048",
        "distributed_init_method=tcp://10.0.0.1:29501 backend=nccl",
        "ncclCommSplit comm 0x1 rank 0 nranks 2 color 0 key 1 - Init START",
        "Please set a HF_TOKEN to enable higher rate limits",
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1:198.51.100.21<0>",
        "mail to someone@example.org about task-12345678",
        "GPU KV cache size: 1,234,567 tokens",
        "Basic settings of the engine",
        "GET /v1/models?limit=5&order=desc HTTP/1.1",
        "vllm @ git+https://github.com/vllm-project/vllm.git@abc and https://example.org/@user/x",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_cut_value_goes_too() -> None:
    assert "sk-12" not in redact("config: api_key='sk-12")
    assert "abc" not in redact('{"password": "abc')


def test_nulls_stay_null() -> None:
    assert redact(pa.array([None, "a"])).to_pylist() == [None, "a"]
