"""What a training is: everything that decides about its outcome beside the data."""

import msgspec


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Frozen, and written into the model's card."""

    seed: int = 1
    epochs: int = 30
    minutes: float = 55.0  # of training at most; the rate falls to nothing by then
    runs: int = 6  # in a batch
    iterations: int = 48  # of a run in a batch, in a row, drawn anew each epoch
    hidden: int = 64
    layers: int = 2
    words: int = 24
    dropout: float = 0.1
    text_dropout: float = (
        0.15  # of a text's vector as a whole: unknown strings are met in the field
    )
    log_dropout: float = 0.15  # of all lines of a run
    rate: float = 2e-3
    decay: float = 1e-2
    steadiness: float = 0.995  # of the mean over steps of training that is kept as the network
    state_weight: float = 1.0
    class_weight: float = 1.0
    rank_weight: float = 0.5
    op_weight: float = 0.7
