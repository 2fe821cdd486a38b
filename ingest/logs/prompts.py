"""What people asked and what was answered never stays in a table: engines can log both."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

HINT: Final = r"Received request |prompt_token_ids|(?:Receive|Finish): obj="
GONE: Final = "<cut>"

# Of the quotes in a prompt none is sure to end it: all up to the last mark behind it is cut.
RULES: Final = (
    (
        r"(?s)(Received request [^\s:]+: prompt: ).*(, (?:\w+_)?params: )",
        rf"\1{GONE}\2",
    ),
    (r"(?s)(Received request [^\s:]+: prompt: )[^<].*", rf"\1{GONE}"),
    (r"(prompt_token_ids(?:: |=))\[[^\]]*\]?", rf"\1{GONE}"),
    (
        r"(?s)^((?:Receive|Finish): obj=\w+\().*?(\brid='[^']*')"
        r"(?:.*(, out=).*('meta_info': \{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}?))?.*$",
        rf"\1\2, {GONE}\3\4)",
    ),
    (r"(?s)^((?:Receive|Finish): obj=[^\[]*)\[.*\]", rf"\1{GONE}"),  # log probabilities of tokens
)


def without_prompts(text: pa.Array) -> pa.Array:
    """Give messages without what was asked and answered; a column's nulls stay null."""
    hinted = pc.fill_null(pc.match_substring_regex(text, HINT), False)
    if not pc.any(hinted, min_count=0).as_py():
        return text
    some = text.filter(hinted)
    for pattern, rest in RULES:
        some = pc.replace_substring_regex(some, pattern, rest)
    return pc.replace_with_mask(text, hinted, some)
