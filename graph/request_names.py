"""The names of one request: programs print it whole, wrapped, or shortened.

vLLM wraps a client's id as `cmpl-ID-0` (the index of the prompt) or `chatcmpl-ID`, and may add
eight random digits or put the number of a choice before it; spans of SGLang show the first eight
digits of a UUID.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_WRAPS: Final = "chatcmpl|cmpl|embd|classify|score|rerank|pool|resp"
_INDEXED: Final = "cmpl|embd|classify|score|rerank|pool"  # a request may hold several prompts
_CHOICE: Final = rf"^\d+_(?P<form>(?:{_WRAPS})-.+)$"
_RANDOM: Final = rf"^(?P<form>(?:{_WRAPS})-.+)-[0-9a-f]{{8}}$"
_INDEX: Final = rf"^(?P<form>(?:{_INDEXED})-.+)-\d{{1,4}}$"
_WRAP: Final = rf"^(?:{_WRAPS})-(?P<form>.+)$"
_UUID: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_EIGHT: Final = r"^(?P<form>[0-9a-f]{8})(?:[0-9a-f]{8,}|-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]+)$"


def shorter(names: pa.Array) -> list[pa.Array]:
    """Give the shorter forms that each name is printed in, most whole first; null where none is."""
    whole = pc.coalesce(_form(names, _CHOICE), names)
    plain = pc.coalesce(_form(whole, _RANDOM), whole)
    one = pc.coalesce(_form(plain, _INDEX), plain)
    bare = [_form(form, _WRAP) for form in (whole, plain, one)]
    body = pc.coalesce(bare[2], one)
    dashed = pc.match_substring_regex(body, _UUID)
    joined = pc.if_else(dashed, pc.replace_substring(body, "-", ""), pa.scalar(None, pa.string()))
    forms = [whole, plain, one, *bare, joined, _form(body, _EIGHT)]
    return [pc.if_else(pc.equal(f, names), pa.scalar(None, pa.string()), f) for f in forms]


def joined(names: pa.Array) -> pa.Array:
    """Give for each of these distinct names the longest one of the same request.

    A shorter form that several requests have stays by itself.
    """
    shown, of = [], []
    for forms in shorter(names):
        place = pc.index_in(forms, names)
        known = pc.and_(place.is_valid(), forms.is_valid())
        shown.append(place.filter(known).to_numpy().astype(np.int64))
        of.append(np.flatnonzero(known.to_numpy(zero_copy_only=False)))
    pairs = np.unique(np.stack([np.concatenate(shown), np.concatenate(of)]), axis=1)
    if not pairs.shape[1]:
        return names
    length = pc.utf8_length(names).to_pylist()
    longer: dict[int, list[int]] = {}
    for one, whole in pairs.T.tolist():
        longer.setdefault(one, []).append(whole)
    root = list(range(len(names)))
    for one in sorted(longer, key=lambda n: -length[n]):  # what is longer is settled
        roots = {root[whole] for whole in longer[one]}
        if len(roots) == 1:
            (root[one],) = roots
    return names.take(pa.array(root))


def matching(names: pa.Array, wanted: str) -> list[str]:
    """Give the names that a word means: the name itself, else a form of it, else its beginning."""
    forms = [names, *shorter(names)]
    for hits in (
        pc.equal(names, wanted),
        _any([pc.equal(form, wanted) for form in forms]),
        _any([pc.starts_with(form, wanted) for form in forms]),
    ):
        found: list[str] = names.filter(hits).to_pylist()
        if found:
            return sorted(found)
    return []


def _any(flags: list[pa.Array]) -> pa.Array:
    found = pc.fill_null(flags[0], False)
    for flag in flags[1:]:
        found = pc.or_(found, pc.fill_null(flag, False))
    return found


def _form(names: pa.Array, pattern: str) -> pa.Array:
    return pc.struct_field(pc.extract_regex(names, pattern), "form")
