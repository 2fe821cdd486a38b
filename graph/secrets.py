"""Secrets out of text: keys, tokens, passwords and credentials become `<redacted>`.

All patterns are RE2. A name says that its value is secret; some secrets are known by their form.
What only may be a secret ("token: 512", `eos_token='</s>'`) stays if it is a number or a mark.
"""

import re
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GONE: Final = "<redacted>"

# a value: quoted, a list, or up to the next separator; cut text may lack the closing quote
VALUE: Final = (
    r"""(?:\\?'(?:[^'\\]|\\[^'])*(?:\\?')?|\\?"(?:[^"\\]|\\[^"])*(?:\\?")?|\[[^\[\]]*\]?|"""
    r"""(?:[Bb]earer |[Bb]asic )?[^\s,;&(){}\[\]'"]+)"""
)
BETWEEN: Final = r"""\\?['"]?\s*(?:[=:]|=>|:=)\s*"""
# certain by its name
NAMED: Final = (
    r"(?i:(?:api|access|secret|private|auth|signing|encryption|ssh|master|account|client|service|"
    r"subscription|session|refresh|bearer|admin|hf|hub|huggingface|openai|aws|wandb|github|gitlab)"
    r"[_ -]?(?:key|token)s?(?:[_-]?(?:id|value|secret))?|[\w-]*secret[\w-]*|"
    r"[\w-]*passw(?:or)?d?[\w-]*|"
    r"[\w-]*passphrase|[\w-]*credentials?[\w-]*|pwd|x-amz-signature|signature)"
)
# names of the environment: in capitals whatever they are
ENVIRONMENT: Final = r"[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)[A-Z0-9_]*"
ASSIGNED: Final = r"\\?['\"]?(?:\s*[=:]\s*| set by environment to | set to |\s*->\s*)"
# perhaps: has a letter and some length, or is a long number
DOUBTFUL: Final = r"(?i:[\w-]*[_-]token|token|[\w-]+[_-]key)"
LIKELY: Final = r"""\\?['"]?(?:[0-9._+/-]*[A-Za-z][^\s,;&(){}\[\]'"<>|]{5,}|[0-9]{16,})"""
FLAG: Final = (
    r"(?i:--?[\w-]*(?:api-?key|api_key|token|passw(?:or)?d?|secret|credentials?))"
    r"""(?:['"],\s*|[= ]\s*)"""
)
# of a URL that is signed or let in by what it says
PARAMETER: Final = r"(?i:sig|key|code|auth|token|pass|sas|x-(?:amz|goog|ms)-[\w-]+)"
FORMS: Final = (
    r"\bhf_[A-Za-z0-9]{12,}",
    r"\bsk-[A-Za-z0-9_-]{8,}",
    r"\bgh[opsur]_[A-Za-z0-9]{10,}",
    r"\bgithub_pat_\w{10,}",
    r"\bglpat-[\w-]{10,}",
    r"\bxox[abeoprs]-[\w-]{8,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}",
    r"\bnvapi-[\w-]{10,}",
    r"\bAIza[\w-]{30,}",
    r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?",
)
# a URL whose host stands before its path has no login: what has an @ behind that is its path
DOMAINS: Final = "com|org|net|io|ai|dev|edu|gov|cloud|local|internal|cn|de|eu|fr|jp|uk|us"
HOST: Final = rf"(?:[\w-]+\.)+(?:{DOMAINS})|\d{{1,3}}(?:\.\d{{1,3}}){{3}}|localhost"
HIDDEN: Final = "\ue000"  # stands for // while logins are cut out
# pattern, and what stays of it
RULES: Final = (
    (rf"://((?:{HOST})[/?#])", rf":{HIDDEN}\1"),
    (r"(://)(?:[^\s/?#'\"@:]*@|[^\s'\"]*@)", rf"\1{GONE}@"),
    (f":{HIDDEN}", "://"),
    (r"""(?i)(authorization\\?['"]?\s*[:=,]\s*)\\?['"]?(?:(?:bearer|basic|digest|token)\s+)?"""
     r"""[^\s,'"}]+""", rf"\1{GONE}"),
    (r"(?i)\b(bearer\s+)[\w.~+/=-]{6,}", rf"\1{GONE}"),
    (r"(?i)\b((?:set-)?cookie\\?['\"]?\s*[:=]\s*)[^\n]+", rf"\1{GONE}"),
    (rf"({FLAG}){VALUE}", rf"\1{GONE}"),
    (rf"({NAMED}{BETWEEN}){VALUE}", rf"\1{GONE}"),
    (rf"\b({ENVIRONMENT}{ASSIGNED}){VALUE}", rf"\1{GONE}"),
    (rf"({ENVIRONMENT}['\"]?,?\s*['\"]?value['\"]?\s*[:=]\s*){VALUE}", rf"\1{GONE}"),
    (rf"\b({DOUBTFUL}{BETWEEN}){LIKELY}", rf"\1{GONE}"),
    (rf"([?&]{PARAMETER}=)[^\s&'\"#]+", rf"\1{GONE}"),
    (r"(hooks\.slack\.com/services/|/api/webhooks/)[\w/-]+", rf"\1{GONE}"),
    (r"\b(Basic )(?:[A-Za-z+/]*\d[A-Za-z0-9+/]{6,}=*|[A-Za-z0-9+/]{7,}=+)", rf"\1{GONE}"),
    (f"(?:{'|'.join(FORMS)})", GONE),
    (r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
     rf"\1{GONE}"),
)  # fmt: skip
# one quick look for what any of the rules needs
HINT: Final = (
    r"(?i:://[^\s'\"@]*@|authorization|bearer |cookie|secret|passw|passphrase|credential|"
    r"\bpwd|signature|(?:api|access|private|auth|signing|encryption|ssh|master|account|client|"
    r"service|subscription|session|refresh|admin|hf|hub|huggingface|openai|aws|wandb|github|"
    r"gitlab)[_ -]?(?:key|token)|(?:key|token)\\?['\"]?\s*[=:]>?\s*(?:[^\d\s]|\d+[A-Za-z]|\d{16})|"
    rf"[?&]{PARAMETER}=|hooks\.slack|/webhooks/|\bbasic [a-z0-9+/]{{7}}|"
    r"-[\w-]*(?:key|token)['\"]?[=, ]|hf_[a-z0-9]{10}|sk-|gh[opsur]_|github_pat_|glpat-|xox|"
    r"akia|asia[0-9a-z]{8}|nvapi-|aiza|eyj|private key)|"
    r"(?:KEY|TOKEN)[A-Z0-9_]*\\?['\"]?(?:\s*[=:]|\s*->| set |,?\s*['\"]?value)"
)


_HINT: Final = re.compile(HINT)


@overload
def redact(text: str) -> str: ...
@overload
def redact(text: pa.Array) -> pa.Array: ...
def redact(text: Any) -> Any:
    """Give the text without secrets; a column's nulls stay null."""
    if isinstance(text, str):
        return redact(pa.array([text]))[0].as_py() if _HINT.search(text) else text
    found = pc.fill_null(pc.match_substring_regex(text, HINT), False)
    there = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    if not len(there):
        return text
    some = text.take(pa.array(there))
    for pattern, rest in RULES:
        some = pc.replace_substring_regex(some, pattern, rest)
    mask = np.zeros(len(text), np.bool_)
    mask[there] = True
    return pc.replace_with_mask(text, pa.array(mask), some)
