"""Tokens back to trees, exactly."""

import numpy as np

from teller.models.tpe.encode import Encoding
from teller.models.tpe.trees import VALUES, Forest, planted
from teller.models.tpe.vocabulary import Vocabulary, patterns


def decode(encoding: Encoding, vocabulary: Vocabulary) -> Forest:
    """Give the forest that was encoded with this vocabulary.

    Structure and operators come from the tokens alone; `row` and `first_row` are not looked at.
    """
    tokens = {name: encoding.tokens[name].to_numpy() for name in ("step", "token", "parent", "at")}
    known = patterns(vocabulary)
    size = np.diff(known.starts)[tokens["token"]]
    first = np.cumsum(size) - size  # part of each token's first span
    code = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(code)) - first[code]
    row = known.starts[tokens["token"]][code] + place
    hung = np.where(tokens["parent"] >= 0, first[tokens["parent"]] + tokens["at"], -1)
    inside = known.parent[row]
    parent = np.where(inside >= 0, first[code] + inside, hung[code])
    own = encoding.parts["word"].to_numpy()
    words = (*vocabulary.words, *encoding.words)
    word = np.where(own >= 0, own + len(vocabulary.words), known.base[row] - 1)
    # tokens are ordered by their first span, and what hangs on a span comes after the children of
    # it that are in its own token: parts are in the order of siblings as they are
    return planted(
        steps=encoding.steps,
        words=words,
        step=tokens["step"][code],
        parent=parent,
        word=word,
        values=encoding.parts.select(VALUES.names),
        order=np.arange(len(code)),
    )
