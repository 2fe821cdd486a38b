"""The root-cause network: operators, ranks, collectives and log lines of an iteration, four heads.

A heterogeneous graph network in the manner of relational graph convolutions (Schlichtkrull et al.,
2018) with GraphSAGE's aggregation (Hamilton et al., 2017), and attention with figures on edges
(GATv2, Brody et al., 2022) between ranks and the collectives that they met in.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, SAGEConv


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths of what goes in and of what is in between."""

    rank: int
    op: int
    meet: int
    line: int
    text: int
    edge: int
    classes: int
    hidden: int = 64
    layers: int = 2
    words: int = 24


class Layer(nn.Module):
    """One exchange between all kinds of nodes; each keeps what it was and adds to it."""

    def __init__(self, sizes: Sizes) -> None:
        """Make the convolutions of each kind of edge."""
        super().__init__()
        width = sizes.hidden
        self.op_to_rank = SAGEConv((width, width), width, aggr="max")
        self.op_sum = SAGEConv((width, width), width, aggr="mean")
        self.rank_to_op = SAGEConv((width, width), width)
        self.rank_to_meet = GATv2Conv(
            (width, width), width, heads=2, concat=False, edge_dim=sizes.edge, add_self_loops=False
        )
        self.meet_to_rank = GATv2Conv(
            (width, width), width, heads=2, concat=False, edge_dim=sizes.edge, add_self_loops=False
        )
        self.rank_to_own = SAGEConv((width, width), width, aggr="max")
        self.rank_mean = SAGEConv((width, width), width, aggr="mean")
        self.meet_to_own = SAGEConv((width, width), width, aggr="max")
        self.line_to_own = SAGEConv((width, width), width, aggr="max")
        self.own_to_rank = SAGEConv((width, width), width)
        self.own_before, self.own_after = (SAGEConv(width, width) for _ in range(2))
        self.rank_before, self.rank_after = (SAGEConv(width, width) for _ in range(2))
        self.norms = nn.ModuleDict({k: nn.LayerNorm(width) for k in ("rank", "op", "meet", "own")})

    def forward(
        self, nodes: dict[str, Tensor], edges: dict[str, Tensor], edge_x: Tensor
    ) -> dict[str, Tensor]:
        """Give all nodes after one exchange."""
        rank, op, meet, own = (nodes[k] for k in ("rank", "op", "meet", "own"))
        back = {k: e.flip(0) for k, e in edges.items()}
        to_rank = (
            self.op_to_rank((op, rank), edges["op_rank"])
            + self.op_sum((op, rank), edges["op_rank"])
            + self.meet_to_rank((meet, rank), back["rank_meet"], edge_x)
            + self.own_to_rank((own, rank), back["rank_iteration"])
            + self.rank_before(rank, edges["rank_next"])
            + self.rank_after(rank, back["rank_next"])
        )
        to_op = self.rank_to_op((rank, op), back["op_rank"])
        to_meet = self.rank_to_meet((rank, meet), edges["rank_meet"], edge_x)
        to_own = (
            self.rank_to_own((rank, own), edges["rank_iteration"])
            + self.rank_mean((rank, own), edges["rank_iteration"])
            + self.meet_to_own((meet, own), edges["meet_iteration"])
            + self.line_to_own((nodes["line"], own), edges["line_iteration"])
            + self.own_before(own, edges["own_next"])
            + self.own_after(own, back["own_next"])
        )
        new = {"rank": to_rank, "op": to_op, "meet": to_meet, "own": to_own}
        kept = {k: self.norms[k](nodes[k] + nn.functional.gelu(v)) for k, v in new.items()}
        return kept | {"line": nodes["line"]}


class Network(nn.Module):
    """From a `Batch` to logits: state and class of iterations, culprit ranks, guilty operators."""

    def __init__(self, sizes: Sizes, dropout: float = 0.1) -> None:
        """Make encoders, layers and heads."""
        super().__init__()
        width = sizes.hidden
        self.sizes = sizes
        self.words = nn.Linear(sizes.text, sizes.words)
        self.into = nn.ModuleDict(
            {
                "rank": _encoder(sizes.rank, width),
                "op": _encoder(sizes.op + sizes.words, width),
                "meet": _encoder(sizes.meet, width),
                "line": _encoder(sizes.line + sizes.words, width),
            }
        )
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.drop = nn.Dropout(dropout)
        self.state = _head(width, 1)
        self.klass = _head(width, sizes.classes)
        self.rank = _head(2 * width, 1)
        self.op = _head(3 * width, 1)
        for name, size in (("rank", sizes.rank), ("op", sizes.op), ("meet", sizes.meet)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_scale", torch.ones(size))

    def forward(
        self,
        rank_x: Tensor,
        op_x: Tensor,
        op_text: Tensor,
        meet_x: Tensor,
        line_x: Tensor,
        line_text: Tensor,
        op_rank: Tensor,
        rank_meet: Tensor,
        rank_meet_x: Tensor,
        rank_iteration: Tensor,
        meet_iteration: Tensor,
        line_iteration: Tensor,
        own_next: Tensor,
        rank_next: Tensor,
        own_x: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Give logits: (iterations,), (iterations, classes), (ranks,), (operators,).

        `own_x` is zeros of shape (iterations, hidden): where the iterations begin.
        """
        nodes = self._nodes(rank_x, op_x, op_text, meet_x, line_x, line_text) | {"own": own_x}
        edges = {
            "op_rank": op_rank, "rank_meet": rank_meet, "rank_iteration": rank_iteration,
            "meet_iteration": meet_iteration, "line_iteration": line_iteration,
            "own_next": own_next, "rank_next": rank_next,
        }  # fmt: skip
        for layer in self.layers:
            nodes = layer(nodes, edges, rank_meet_x)
        own, rank, op = (self.drop(nodes[k]) for k in ("own", "rank", "op"))
        of_rank = torch.cat([rank, own[rank_iteration[1]]], 1)
        of_op = torch.cat([op, of_rank[op_rank[1]]], 1)
        return (
            self.state(own).squeeze(1), self.klass(own), self.rank(of_rank).squeeze(1),
            self.op(of_op).squeeze(1),
        )  # fmt: skip

    def _nodes(
        self,
        rank_x: Tensor,
        op_x: Tensor,
        op_text: Tensor,
        meet_x: Tensor,
        line_x: Tensor,
        line_text: Tensor,
    ) -> dict[str, Tensor]:
        return {
            "rank": self.into["rank"](self._scaled("rank", rank_x)),
            "op": self.into["op"](torch.cat([self._scaled("op", op_x), self.words(op_text)], 1)),
            "meet": self.into["meet"](self._scaled("meet", meet_x)),
            "line": self.into["line"](torch.cat([line_x, self.words(line_text)], 1)),
        }

    def _scaled(self, name: str, x: Tensor) -> Tensor:
        mean, scale = getattr(self, f"{name}_mean"), getattr(self, f"{name}_scale")
        scaled: Tensor = ((x - mean) / scale).clamp(-8, 8)
        return scaled


def _encoder(size: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(size, width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width)
    )


def _head(size: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(size, 64), nn.GELU(), nn.Linear(64, out))
