"""What each head is asked: abnormal or not, which class, which rank, which operator."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch_geometric.utils import scatter

from teller.models.samples.labels import POSITIVE

HEADS = ("state", "class", "rank", "op")
ALONE = 0.3  # of a row's own yes or no, beside its place among the rows of its iteration


def losses(
    said: tuple[Tensor, Tensor, Tensor, Tensor],
    want: Mapping[str, Tensor],
    of_rank: Tensor,
    of_op: Tensor,
    weights: Tensor,
) -> dict[str, Tensor]:
    """Give the losses of the four heads; what is not asked costs nothing.

    `of_rank` and `of_op` say which iteration a rank-step and an operator is in; `want["weight"]`
    is of iterations, so that a fault of many of them does not outweigh one of few.
    """
    state, klass, rank, op = said
    asked, faulty = want["state"] >= 0, want["state"] == POSITIVE
    weight = want["weight"]
    each = nn.functional.binary_cross_entropy_with_logits(
        state[asked], want["state"][asked].float(), reduction="none"
    )
    kinds = nn.functional.cross_entropy(
        klass[faulty], want["klass"][faulty], weight=weights, label_smoothing=0.05,
        reduction="none",
    )  # fmt: skip
    found = {"state": each.sum() / asked.sum().clamp(min=1)}
    found["class"] = (kinds * weight[faulty]).sum() / weight[faulty].sum().clamp(min=1e-6)
    for name, logit, of in (("rank", rank, of_rank), ("op", op, of_op)):
        found[name] = _place(logit, want[name], of, weight) + ALONE * _alone(logit, want[name])
    return found


def _place(logit: Tensor, label: Tensor, of: Tensor, weight: Tensor) -> Tensor:
    """Ask that the right rows stand before all others of their iteration, in one softmax of them.

    The loss is the negative logarithm of the share of all right rows together.
    """
    size = len(weight)
    right = label == 1
    asked = scatter(right.float(), of, 0, size, reduce="max") > 0
    top = scatter(logit.detach(), of, 0, size, reduce="max")
    raised = torch.exp(logit - top[of]) * (label >= 0)
    whole = scatter(raised, of, 0, size)[asked]
    share = scatter(raised * right, of, 0, size)[asked] / whole.clamp(min=1e-9)
    own = weight[asked]
    return -(torch.log(share.clamp(min=1e-6)) * own).sum() / own.sum().clamp(min=1e-6)


def _alone(logit: Tensor, label: Tensor) -> Tensor:
    told = label >= 0
    each = nn.functional.binary_cross_entropy_with_logits(
        logit[told], label[told].float(), reduction="none"
    )
    return each.sum() / told.sum().clamp(min=1)
