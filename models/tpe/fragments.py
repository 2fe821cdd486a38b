"""Tokens in the graph: fragments with their operators, and how often each step has each."""

from collections.abc import Sequence, Set
from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa

from teller.graph import ids, schema
from teller.graph.project import SHARED_RUN
from teller.graph.tables import fit, table_name
from teller.models.tpe.encode import Encoding
from teller.models.tpe.trees import Ints, Word
from teller.models.tpe.vocabulary import UNKNOWN, Patterns, Vocabulary, patterns, stem

DIGEST_BYTES: Final = 6
FRAGMENT: Final = schema.FRAGMENT.label
OPERATOR: Final = schema.OPERATOR.label

Lines = list[tuple[int, int, Word]]  # parent, depth, word


def tables(run_key: str, encoding: Encoding, vocabulary: Vocabulary) -> dict[str, pa.Table]:
    """Give the rows of `Fragment`, `CONTAINS` and `CONSISTS_OF` for a run's steps, and operators.

    A fragment's operators are written as the vocabulary knows them, without numbers, or as a family
    in brackets; one that it does not know is a fragment of its own. Equal fragments of two
    vocabularies are one node.
    """
    token, words = _with_strangers(encoding, vocabulary)
    used, code = np.unique(token, return_inverse=True)
    known = patterns(vocabulary)
    written = [_lines(t, known, words, vocabulary) for t in used.tolist()]
    names = [_name(lines) for lines in written]
    fragment = [ids.node_id("", FRAGMENT, name) for name in names]
    contents = [
        {"src": f, "dst": _operator_id(word), "position": n, "parent": parent, "depth": depth}
        for f, lines in zip(fragment, written, strict=True)
        for n, (parent, depth, word) in enumerate(lines)
    ]
    size = [len(lines) for lines in written]
    fragments = {"id": fragment, "run_id": [SHARED_RUN] * len(size), "name": names, "size": size}
    return {
        FRAGMENT: fit(pa.table(fragments), schema.FRAGMENT),
        OPERATOR: _operators({w for lines in written for *_, w in lines}),
        table_name(schema.CONTAINS): pa.Table.from_pylist(contents, schema=schema.CONTAINS.arrow),
        table_name(schema.CONSISTS_OF): _counts(run_key, encoding, np.array(fragment)[code]),
    }


def _with_strangers(encoding: Encoding, vocabulary: Vocabulary) -> tuple[Ints, list[Word]]:
    """Give unknown operators tokens of their own, after all others; and all words."""
    token = encoding.tokens["token"].to_numpy().copy()
    strange = np.flatnonzero(token == UNKNOWN)
    first = np.searchsorted(encoding.parts["token"].to_numpy(), strange)
    words = list(map(stem, encoding.words))
    number = {word: n for n, word in enumerate(sorted(set(words)), start=len(vocabulary))}
    own = np.array([number[word] for word in words], np.int64)
    token[strange] = own[encoding.parts["word"].to_numpy()[first]]
    return token, [("", "", ""), *vocabulary.words, *number]


def _lines(token: int, known: Patterns, words: Sequence[Word], vocabulary: Vocabulary) -> Lines:
    """Give parent, depth and word of each span of a token."""
    if token >= len(vocabulary):
        return [(-1, 0, words[token - len(vocabulary) + vocabulary.base_count])]
    rows = slice(known.starts[token], known.starts[token + 1])
    columns = (known.parent[rows], known.depth[rows], known.base[rows])
    return [(p, d, words[b]) for p, d, b in zip(*(c.tolist() for c in columns), strict=True)]


def _name(lines: Lines) -> str:
    """Give a name that no other fragment has: its first operator, its size and a hash of it all."""
    said = "\n".join(f"{depth} {word[0]} {_operator(word)}" for _, depth, word in lines)
    digest = blake2b(said.encode(), digest_size=DIGEST_BYTES).hexdigest()
    return f"{_operator(lines[0][2])} ({len(lines)}) {digest}"


def _operator(word: Word) -> str:
    return word[2] or f"[{word[1]}]"


def _operator_id(word: Word) -> int:
    return ids.node_id("", OPERATOR, _operator(word))


def _operators(words: Set[Word]) -> pa.Table:
    """Give a row an operator; of several layers or families with one name, the last is kept."""
    kept = {_operator_id(word): word for word in sorted(words)}
    columns = {
        "id": list(kept),
        "run_id": [SHARED_RUN] * len(kept),
        "name": [_operator(word) for word in kept.values()],
        "family": [word[1] for word in kept.values()],
        "layer": [word[0] for word in kept.values()],
    }
    return fit(pa.table(columns), schema.OPERATOR)


def _counts(run_key: str, encoding: Encoding, fragment: Ints) -> pa.Table:
    step = encoding.tokens["step"].to_numpy()
    pairs, count = np.unique(np.stack([step, fragment]), axis=1, return_counts=True)
    rank, index = (encoding.steps[n].to_numpy() for n in ("rank", "step_index"))
    step_id = ids.node_ids(run_key, schema.STEP.label, rank, index)
    return pa.table([step_id[pairs[0]], pairs[1], count], schema=schema.CONSISTS_OF.arrow)
