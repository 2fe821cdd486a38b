"""The training loop, to be read from top to bottom."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import swa_utils

from teller.graph.medians import Ints
from teller.models.learn.config import Config
from teller.models.learn.losses import HEADS, losses
from teller.models.learn.network import Network, Sizes
from teller.models.samples import batch as batches
from teller.models.samples.batch import Batch
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import POSITIVE, class_names
from teller.models.samples.sample import Samples
from teller.models.samples.words import Words

Told = Callable[[int, dict[str, float]], None]  # epoch, figures


def train(
    runs: Sequence[Labelled], words: Words, config: Config, told: Told, resume: str = ""
) -> Network:
    """Fit a network to labelled runs; the same runs, config and machine give the same network.

    `told` hears of each epoch. `resume` is a file where the state is kept after each epoch, and
    taken up from when it is there.
    """
    torch.manual_seed(config.seed)
    random = np.random.default_rng(config.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Network(sizes_of(runs[0], words, config), config.dropout).to(device)
    _scale(net, runs)
    optimizer = torch.optim.AdamW(net.parameters(), lr=config.rate, weight_decay=config.decay)
    weights = _class_weights(runs).to(device)
    steady = swa_utils.AveragedModel(
        net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(config.steadiness)
    )
    begun, first = time.monotonic(), _taken_up(resume, net, steady, optimizer)
    for epoch in range(first, config.epochs):
        share = max(epoch / config.epochs, (time.monotonic() - begun) / (60 * config.minutes))
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = config.rate * (0.02 + 0.49 * (1 + np.cos(np.pi * share)))
        told(epoch, _epoch(net.train(), steady, runs, words, config, optimizer, weights, random))
        if resume:
            held = {"net": net, "steady": steady, "optimizer": optimizer}
            states = {name: one.state_dict() for name, one in held.items()}
            torch.save(states | {"epoch": epoch + 1}, resume)
    found: Network = steady.module.eval().cpu()
    return found


def _epoch(
    net: Network,
    steady: swa_utils.AveragedModel,
    runs: Sequence[Labelled],
    words: Words,
    config: Config,
    optimizer: torch.optim.Optimizer,
    weights: Tensor,
    random: np.random.Generator,
) -> dict[str, float]:
    """Go over all runs once; give the mean loss of each head."""
    told = []
    for chosen in _shuffled(len(runs), config.runs, random):
        whole, truth = _drawn([runs[i] for i in chosen], words, config, random)
        given = tensors(whole, net.sizes.hidden, weights.device)
        of_rank = given["rank_iteration"][1]
        want = {k: v.to(weights.device) for k, v in truth.items()}
        each = losses(net(**given), want, of_rank, of_rank[given["op_rank"][1]], weights)
        loss = torch.stack([getattr(config, f"{k}_weight") * v for k, v in each.items()]).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        optimizer.step()
        steady.update_parameters(net)
        told.append({k: float(v.detach()) for k, v in each.items()})
    return {k: float(np.mean([one[k] for one in told])) for k in HEADS} if told else {}


def sizes_of(one: Labelled, words: Words, config: Config) -> Sizes:
    """Give the widths of the data and of the network."""
    held = one.samples
    return Sizes(
        rank=held.rank_x.shape[1], op=held.op_x.shape[1], meet=held.meet_x.shape[1],
        line=held.line_x.shape[1], text=words.width,
        edge=batches.RANK_MEET, classes=len(class_names()), hidden=config.hidden,
        layers=config.layers, words=config.words,
    )  # fmt: skip


def tensors(whole: Batch, hidden: int, device: torch.device | None = None) -> dict[str, Tensor]:
    """Give a batch as the network takes it."""
    held = {n: torch.from_numpy(np.ascontiguousarray(a)) for n, a in whole.inputs().items()}
    held["own_x"] = torch.zeros(whole.iterations, hidden)
    return {n: t.to(device) for n, t in held.items()}


def _taken_up(
    path: str, net: Network, steady: swa_utils.AveragedModel, optimizer: torch.optim.Optimizer
) -> int:
    try:
        held = torch.load(path, weights_only=True) if path else None
    except FileNotFoundError:
        held = None
    if held is None:
        return 0
    net.load_state_dict(held["net"])
    steady.load_state_dict(held["steady"])
    optimizer.load_state_dict(held["optimizer"])
    return int(held["epoch"])


def _scale(net: Network, runs: Sequence[Labelled]) -> None:
    for name in ("rank", "op", "meet"):
        held = np.concatenate([getattr(r.samples, f"{name}_x") for r in runs]).astype(np.float64)
        mean, scale = held.mean(0), held.std(0)
        getattr(net, f"{name}_mean").copy_(torch.from_numpy(mean.astype(np.float32)))
        scale = np.maximum(scale, 0.05).astype(np.float32)
        getattr(net, f"{name}_scale").copy_(torch.from_numpy(scale))


def _class_weights(runs: Sequence[Labelled]) -> Tensor:
    """Weigh classes by the root of how rare they are among runs: iterations of one are alike."""
    count = np.zeros(len(class_names()))
    for one in runs:
        held = one.labels.klass[one.labels.state == POSITIVE]
        count[np.unique(held[held >= 0])] += 1
    weight = 1 / np.sqrt(np.maximum(count, 1))
    return torch.from_numpy((weight / weight[count > 0].mean()).astype(np.float32))


def _shuffled(size: int, each: int, random: np.random.Generator) -> Iterator[Ints]:
    order = random.permutation(size)
    for at in range(0, size, each):
        yield order[at : at + each]


def _drawn(
    runs: Sequence[Labelled], words: Words, config: Config, random: np.random.Generator
) -> tuple[Batch, dict[str, Tensor]]:
    """Draw iterations of some runs, with texts left out by chance."""
    parts: list[Batch] = []
    truth: dict[str, list[Any]] = {k: [] for k in ("state", "klass", "rank", "op", "weight")}
    for one in runs:
        size = len(one.samples.step_index)
        first = int(random.integers(0, max(size - config.iterations, 0), endpoint=True))
        wanted = np.arange(first, min(first + config.iterations, size))  # in a row: time counts
        text = words.of(one.samples.texts.tolist())
        text = text * (random.random((len(text), 1)) >= config.text_dropout).astype(np.float32)
        part = batches.batch(_silenced(one.samples, config, random), text, wanted)
        parts.append(part)
        truth["state"].append(one.labels.state[part.iteration_rows])
        truth["klass"].append(one.labels.klass[part.iteration_rows])
        truth["rank"].append(one.labels.rank[part.rank_rows])
        truth["op"].append(one.labels.op[part.op_rows])
        few = np.sqrt(max((truth["state"][-1] == POSITIVE).sum(), 1))
        truth["weight"].append(np.full(len(part.iteration_rows), 1 / few, np.float32))
    return batches.joined(parts), {k: torch.from_numpy(np.concatenate(v)) for k, v in truth.items()}


def _silenced(samples: Samples, config: Config, random: np.random.Generator) -> Samples:
    """Leave out all lines of a run by chance: many runs come without a log."""
    if random.random() >= config.log_dropout:
        return samples
    none = np.zeros(0, np.int64)
    return replace(samples, line_of=none, line_word=none, line_x=samples.line_x[:0])
