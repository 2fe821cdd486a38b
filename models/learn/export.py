"""From a trained network to what ships: ONNX for scoring, safetensors to train on from."""

import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from teller.models.learn.network import Network
from teller.models.learn.training import tensors
from teller.models.samples.batch import Batch, joined

OPSET = 18
OUTPUTS = ("state", "klass", "rank", "op")
# The axes that differ from run to run, by the input that has them.
AXES = {
    "rank_x": {0: "ranks"}, "op_x": {0: "ops"}, "op_text": {0: "ops"}, "meet_x": {0: "meets"},
    "line_x": {0: "lines"}, "line_text": {0: "lines"}, "op_rank": {1: "ops"},
    "rank_meet": {1: "edges"}, "rank_meet_x": {0: "edges"}, "rank_iteration": {1: "ranks"},
    "meet_iteration": {1: "meets"}, "line_iteration": {1: "lines"}, "own_x": {0: "iterations"},
    "own_next": {1: "following"}, "rank_next": {1: "rank_following"},
}  # fmt: skip


def export(net: Network, example: Batch, folder: Path) -> None:
    """Write `network.onnx` and `network.safetensors`; `example` shows the shapes."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), folder / "network.safetensors")
    given = tensors(joined([example, example]), net.sizes.hidden)
    dynamic = {
        n: dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for n, axes in AXES.items()
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about its own future
        program = torch.onnx.export(
            net.eval(), args=(), kwargs=given, dynamo=True, opset_version=OPSET,
            input_names=list(given), output_names=list(OUTPUTS), dynamic_shapes=dynamic,
            verbose=False,
        )  # fmt: skip
    program.save(str(folder / "network.onnx"), external_data=False)


def difference(net: Network, whole: Batch, said: dict[str, np.ndarray]) -> float:
    """Give the largest difference between the network's logits and what was said instead."""
    with torch.inference_mode():
        own = net.eval()(**tensors(whole, net.sizes.hidden))
    pairs = zip(OUTPUTS, own, strict=True)
    return max(float(np.abs(t.numpy() - said[n]).max(initial=0)) for n, t in pairs)
