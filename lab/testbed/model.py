"""A Llama-like decoder, tensor- and pipeline-parallel over torch.distributed, random weights.

It knows of no profiler and of no fault. Weights are (out, in); activations are (tokens, features).
"""

import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from teller.lab.testbed.settings import Rank, Service


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a prompt: rows `first` to `last` of the batch, the last of `context` tokens."""

    first: int
    last: int
    context: int
    table: Tensor
    mask: Tensor  # (rows, context), 0 or -1e9


@dataclass(frozen=True, slots=True)
class Batch:
    """Where the tokens of one step lie in the cache, and what each may look at."""

    slots: Tensor  # of each token
    turns: Tensor  # complex rotations, (tokens, 1, 1, head / 2)
    prefills: list[Chunk]
    decodes: int  # the last rows of the batch
    tables: Tensor | None  # (decodes, blocks)
    mask: Tensor | None  # (decodes, 1, 1, blocks · block_tokens)


class Group:
    """The ranks that share this one's layers."""

    def __init__(self, size: int, handle: dist.ProcessGroup | None) -> None:
        self.size = size
        self._handle = handle

    def all_reduce(self, x: Tensor) -> Tensor:
        """Add up the shares of all ranks, in place."""
        if self.size > 1:
            dist.all_reduce(x, group=self._handle)
        return x

    def all_gather(self, x: Tensor) -> Tensor:
        """Put the columns of all ranks side by side."""
        if self.size == 1:
            return x
        parts = [torch.empty_like(x) for _ in range(self.size)]
        dist.all_gather(parts, x, group=self._handle)
        return torch.cat(parts, -1)


class ColumnParallelLinear(nn.Module):
    """Each rank has some of the outputs."""

    def __init__(self, inner: int, outer: int, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        drawn = torch.randn(outer // group.size, inner, generator=seed) / math.sqrt(inner)
        self.weight = nn.Parameter(drawn, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Give this rank's outputs."""
        return functional.linear(x, self.weight)


class RowParallelLinear(nn.Module):
    """Each rank has some of the inputs; the sum is the output."""

    def __init__(self, inner: int, outer: int, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        drawn = torch.randn(outer, inner // group.size, generator=seed) / math.sqrt(inner)
        self.weight = nn.Parameter(drawn, requires_grad=False)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """Give the whole output, the same on all ranks."""
        return self.group.all_reduce(functional.linear(x, self.weight))


class RMSNorm(nn.Module):
    """Scale to unit mean square."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Give the scaled rows."""
        return functional.rms_norm(x, (x.shape[-1],), self.weight)


class SiluAndMul(nn.Module):
    """Gate one half by the other."""

    def forward(self, x: Tensor) -> Tensor:
        """Give half as many columns."""
        gate, up = x.chunk(2, -1)
        return functional.silu(gate) * up


class RotaryEmbedding(nn.Module):
    """Turn queries and keys by their positions."""

    def forward(self, qkv: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Give queries and keys of (tokens, 3, heads, head)."""
        pairs = torch.view_as_complex(qkv[:, :2].unflatten(-1, (-1, 2)))
        turned = torch.view_as_real(pairs * batch.turns).flatten(-2)
        return turned[:, 0], turned[:, 1]


class Attention(nn.Module):
    """Attention over a paged cache: prefills one by one, decodes together."""

    def __init__(self, heads: int, head: int, blocks: int, block_tokens: int) -> None:
        super().__init__()
        self.heads, self.head = heads, head
        self.keys = torch.zeros(blocks, block_tokens, heads, head)
        self.values = torch.zeros(blocks, block_tokens, heads, head)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        """Store keys and values, and give (tokens, heads · head)."""
        self.keys.view(-1, self.heads, self.head).index_copy_(0, batch.slots, k)
        self.values.view(-1, self.heads, self.head).index_copy_(0, batch.slots, v)
        out = torch.empty_like(q)
        attend = functional.scaled_dot_product_attention
        for one in batch.prefills:
            seen = [
                kept[one.table].view(-1, self.heads, self.head)[: one.context].transpose(0, 1)
                for kept in (self.keys, self.values)
            ]
            mine = q[None, one.first : one.last].transpose(1, 2)
            made = attend(mine, seen[0][None], seen[1][None], attn_mask=one.mask)
            out[one.first : one.last] = made[0].transpose(0, 1)
        if batch.decodes:
            first = len(q) - batch.decodes
            shape = (batch.decodes, -1, self.heads, self.head)
            k, v = (kept[batch.tables].view(shape).transpose(1, 2) for kept in
                    (self.keys, self.values))  # fmt: skip
            out[first:] = attend(q[first:].unsqueeze(2), k, v, attn_mask=batch.mask).squeeze(2)
        return out.reshape(len(q), -1)


class LlamaAttention(nn.Module):
    """Projections around attention."""

    def __init__(self, of: Service, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        self.heads, self.head = of.heads // group.size, of.hidden // of.heads
        self.qkv_proj = ColumnParallelLinear(of.hidden, 3 * of.hidden, group, seed)
        self.rotary_emb = RotaryEmbedding()
        self.attn = Attention(self.heads, self.head, of.kv_blocks, of.block_tokens)
        self.o_proj = RowParallelLinear(of.hidden, of.hidden, group, seed)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Give (tokens, hidden)."""
        qkv = self.qkv_proj(x).view(len(x), 3, self.heads, self.head)
        q, k = self.rotary_emb(qkv, batch)
        return self.o_proj(self.attn(q, k, qkv[:, 2], batch))


class LlamaMLP(nn.Module):
    """A gated pair of projections."""

    def __init__(self, of: Service, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        self.gate_up_proj = ColumnParallelLinear(of.hidden, 2 * of.ffn, group, seed)
        self.act_fn = SiluAndMul()
        self.down_proj = RowParallelLinear(of.ffn, of.hidden, group, seed)

    def forward(self, x: Tensor) -> Tensor:
        """Give (tokens, hidden)."""
        return self.down_proj(self.act_fn(self.gate_up_proj(x)))


class LlamaDecoderLayer(nn.Module):
    """One layer."""

    def __init__(self, of: Service, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(of.hidden)
        self.self_attn = LlamaAttention(of, group, seed)
        self.post_attention_layernorm = RMSNorm(of.hidden)
        self.mlp = LlamaMLP(of, group, seed)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Give (tokens, hidden)."""
        x = x + self.self_attn(self.input_layernorm(x), batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    """The layers of one rank; embedding on the first stage, head on the last."""

    def __init__(self, me: Rank, group: Group, seed: torch.Generator) -> None:
        super().__init__()
        of = me.service
        stage = of.layers // of.pp
        self.first, self.last = me.pp_rank == 0, me.pp_rank == of.pp - 1
        if self.first:
            table = torch.randn(of.vocab, of.hidden, generator=seed)
            self.embed_tokens = nn.Embedding.from_pretrained(table)
        mine = range(me.pp_rank * stage, (me.pp_rank + 1) * stage)
        self.layers = nn.ModuleDict({str(i): LlamaDecoderLayer(of, group, seed) for i in mine})
        if self.last:
            self.norm = RMSNorm(of.hidden)
            self.lm_head = ColumnParallelLinear(of.hidden, of.vocab, group, seed)
        self.group = group

    def forward(self, tokens: Tensor, x: Tensor | None, batch: Batch) -> Tensor:
        """Give hidden states from tokens, or from those of the stage before."""
        hidden = self.embed_tokens(tokens) if x is None else x
        for layer in self.layers.values():
            hidden = layer(hidden, batch)
        return self.norm(hidden) if self.last else hidden

    def compute_logits(self, hidden: Tensor, rows: Tensor) -> Tensor:
        """Give (rows, vocab)."""
        return self.group.all_gather(self.lm_head(hidden[rows]))
