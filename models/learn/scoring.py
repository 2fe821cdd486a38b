"""What a network says of runs, before it is exported: for training and for evaluation."""

import numpy as np
import torch

from teller.models.learn.network import Network
from teller.models.learn.training import tensors
from teller.models.measures import Judged, first_of
from teller.models.samples.batch import batch
from teller.models.samples.labelled import Labelled
from teller.models.samples.words import Words


def judged(net: Network, one: Labelled, words: Words) -> Judged:
    """Score one run and hold it against its labels."""
    whole = batch(one.samples, words.of(one.samples.texts.tolist()))
    with torch.inference_mode():
        state, klass, rank, op = net(**tensors(whole, net.sizes.hidden))
    own, size = one.samples, whole.iterations
    of_op = own.rank_of[own.op_rank]
    return Judged(
        run=one.about.run, state=one.labels.state, chance=torch.sigmoid(state).numpy(),
        klass=one.labels.klass, said_class=klass.argmax(1).numpy().astype(np.int64),
        rank_right=first_of(own.rank_of, rank.numpy(), one.labels.rank, size),
        op_first=first_of(of_op, op.numpy(), one.labels.op, size),
        op_third=first_of(of_op, op.numpy(), one.labels.op, size, best=3),
    )  # fmt: skip
