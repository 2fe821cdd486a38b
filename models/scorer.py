"""Scores by the shipped network, without torch: ONNX Runtime, one thread."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from teller.errors import BadUsage
from teller.graph.medians import Floats
from teller.models.calibration import Curve
from teller.models.samples.batch import Batch, batch
from teller.models.samples.sample import VERSION, Samples
from teller.models.samples.words import Words

OUTPUTS: Final = ("state", "klass", "rank", "op")
AT_ONCE: Final = 256  # iterations scored together: memory stays bounded
MARGIN: Final = 4  # iterations on either side that are read as well: neighbours in time count


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is: read beside its weights."""

    version: int  # of the samples it reads
    classes: list[str]
    hidden: int
    trained_on: dict[str, Any]
    config: dict[str, Any]
    curve: Curve  # rate of false alarms by threshold, of the calibration runs
    measured: dict[str, dict[str, float]] = {}  # by set


@dataclass(frozen=True, slots=True)
class Scores:
    """What the network says of a run: by iteration, rank-step and operator."""

    chance: Floats  # (iterations,) that it is abnormal
    classes: Floats  # (iterations, classes), sums to 1
    rank: Floats  # (rank-steps,) logits of being the culprit
    op: Floats  # (operators,) logits of being guilty
    unknown_texts: tuple[str, ...]  # strings of the run without a vector


class Scorer:
    """A network with its words and its card."""

    def __init__(self, folder: Path) -> None:
        """Open a model; raises `BadUsage` where it is none, or not for this version."""
        try:
            self.card = msgspec.json.decode((folder / "card.json").read_bytes(), type=Card)
            self.words = Words.load(folder / "words.npz")
            self._network = (folder / "network.onnx").read_bytes()
        except (OSError, msgspec.DecodeError, ValueError, KeyError) as err:
            raise BadUsage(f"{folder} holds no model that can be read: {err}") from err
        if self.card.version != VERSION:
            raise BadUsage(
                f"the model in {folder} reads samples of version {self.card.version}, this is "
                f"{VERSION}: train it again (teller train), or leave it out (--no-model)"
            )

    @cached_property
    def _session(self) -> Any:
        import onnxruntime  # a quarter of a second

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(
            self._network, options, providers=["CPUExecutionProvider"]
        )

    def raw(self, whole: Batch) -> dict[str, Floats]:
        """Give the four logits of one batch."""
        given: dict[str, Any] = dict(whole.inputs())
        given["own_x"] = np.zeros((whole.iterations, self.card.hidden), np.float32)
        said = self._session.run(list(OUTPUTS), given)
        return dict(zip(OUTPUTS, said, strict=True))

    def score(self, samples: Samples, words: Words | None = None) -> Scores:
        """Score all iterations of a run; `words` are used in place of the model's own."""
        strings = samples.texts.tolist()
        words = words or self.words
        text = words.of(strings)
        size = len(samples.step_index)
        chance, classes = np.zeros(size), np.zeros((size, len(self.card.classes)))
        rank, op = np.zeros(len(samples.rank)), np.zeros(len(samples.op_rank))
        for first in range(0, size, AT_ONCE):
            end = min(first + AT_ONCE, size)
            near = np.arange(max(first - MARGIN, 0), min(end + MARGIN, size))
            part = batch(samples, text, near)
            said = self.raw(part)
            own = (near >= first) & (near < end)
            of_rank = own[part.rank_iteration[1]]
            of_op = of_rank[part.op_rank[1]]
            chance[near[own]] = _sigmoid(said["state"][own])
            classes[near[own]] = _softmax(said["klass"][own])
            rank[part.rank_rows[of_rank]] = said["rank"][of_rank]
            op[part.op_rows[of_op]] = said["op"][of_op]
        unknown = tuple(s for s in strings if s not in words)
        return Scores(chance, classes, rank, op, unknown)


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(x, -60, 60)))


def _softmax(x: Floats) -> Floats:
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares
