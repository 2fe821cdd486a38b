"""Runs the plan of one step on one rank's share of the model."""

import logging
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from teller.lab.testbed.model import Batch, Chunk, Group, LlamaModel
from teller.lab.testbed.scheduler import Row, rows
from teller.lab.testbed.settings import Rank
from teller.lab.testbed.tokenizer import Tokenizer

log = logging.getLogger("testbed")
NEVER = -1e9


class Runner:
    """One rank's share of the model, and what a step needs around it."""

    def __init__(self, me: Rank, group: Group) -> None:
        self.me = me
        self.model = LlamaModel(me, group, torch.Generator().manual_seed(1234 + me.rank)).eval()
        head = me.service.hidden // me.service.heads
        speed = 10000 ** -(torch.arange(0, head, 2).float() / head)
        self.angles = torch.outer(torch.arange(me.service.max_length).float(), speed)
        self.choice = torch.Generator().manual_seed(me.rank)
        self.words = Tokenizer().size if me.pp_rank == me.service.pp - 1 else 0
        self.batches = 0

    def log_tables(self, plan: Sequence[int], lines: int = 0) -> None:
        """Log the block table of each request; over and over until there are so many lines."""
        told = list(enumerate(rows(plan)))
        for at in range(lines or len(told)):
            slot, row = told[at % len(told)]
            log.info(
                "slot %d: %d tokens scheduled, context %d, block table %s",
                slot, row.new, row.context, row.blocks,
            )  # fmt: skip

    def prepare_inputs(self, plan: Sequence[int]) -> tuple[Tensor, Tensor, Batch]:
        """Give token ids, the rows whose logits are asked for, and the batch."""
        if self.batches % self.me.service.table_every == 0:
            self.log_tables(plan)
        self.batches += 1
        told = list(rows(plan))
        size = self.me.service.block_tokens
        places = [p for row in told for p in range(row.context - row.new, row.context)]
        slots = [
            row.blocks[p // size] * size + p % size
            for row in told
            for p in range(row.context - row.new, row.context)
        ]
        last = torch.tensor([row.new for row in told]).cumsum(0) - 1
        prefills = [row for row in told if not row.decodes]
        decodes = [row for row in told if row.decodes]
        tables, mask = _decode_masks(decodes, size)
        angle = self.angles[torch.tensor(places)]
        turns = torch.polar(torch.ones_like(angle), angle)[:, None, None]
        chunks = _chunks(prefills)
        batch = Batch(torch.tensor(slots), turns, chunks, len(decodes), tables, mask)
        return torch.tensor([t for row in told for t in row.tokens]), last, batch

    @torch.inference_mode()
    def execute_model(self, plan: Sequence[int], step: int) -> Tensor | None:
        """Run step `step`; rank 0 gets the sampled token of each request."""
        of = self.me.service
        tokens, last, batch = self.prepare_inputs(plan)
        hidden = None
        if self.me.pp_rank:
            hidden = torch.empty(len(tokens), of.hidden)
            dist.recv(hidden, self.me.rank - of.tp)
        hidden = self.model(tokens, hidden, batch)
        if self.me.pp_rank < of.pp - 1:
            dist.send(hidden, self.me.rank + of.tp)
        else:
            logits = self.model.compute_logits(hidden, last)
            if self.me.tp_rank == 0:
                sampled = self.sample(logits)
                if self.me.rank == 0:
                    return sampled
                dist.send(sampled, 0)
        if self.me.rank:
            return None
        sampled = torch.empty(plan[0], dtype=torch.int64)
        dist.recv(sampled, of.tp * (of.pp - 1))
        return sampled

    def sample(self, logits: Tensor) -> Tensor:
        """Draw a token a row."""
        odds = torch.softmax(logits[:, : self.words].float() / 2.0, -1)
        return torch.multinomial(odds, 1, generator=self.choice).squeeze(1)


def _decode_masks(decodes: list[Row], size: int) -> tuple[Tensor | None, Tensor | None]:
    """Give the block tables, filled up to the longest, and what lies behind each context."""
    if not decodes:
        return None, None
    longest = max(len(row.blocks) for row in decodes)
    tables = torch.tensor([row.blocks + [0] * (longest - len(row.blocks)) for row in decodes])
    context = torch.tensor([row.context for row in decodes])[:, None]
    behind = torch.arange(longest * size)[None] >= context
    mask = torch.zeros(len(decodes), longest * size).masked_fill_(behind, NEVER)
    return tables, mask[:, None, None]


def _chunks(prefills: list[Row]) -> list[Chunk]:
    chunks, first = [], 0
    for row in prefills:
        mask = torch.full((row.new, row.context), NEVER).triu(row.context - row.new + 1)
        chunks.append(Chunk(first, first + row.new, row.context, torch.tensor(row.blocks), mask))
        first += row.new
    return chunks
