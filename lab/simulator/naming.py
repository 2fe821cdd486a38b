"""How engines name a step, with its load in the name."""

from teller.lab.simulator.batching import Batch
from teller.lab.simulator.dialect import Dialect
from teller.lab.simulator.scene import Scene


def step_name(scene: Scene, names: Dialect, index: int, batch: Batch) -> str:
    """Give the name of a step's annotation."""
    c, g = batch.contexts, batch.generations
    ct, gt = batch.context_tokens, batch.generation_tokens
    if scene.engine == "sglang":
        if c:
            return f"step[EXTEND bs={c} toks={ct}]"
        return f"step[DECODE bs={max(g, 1)}]"
    if scene.engine == "trtllm":
        return f"[Executor] _forward_step {index}: {c} ctx reqs, {ct} ctx tokens, {g} gen reqs"
    if names.step_form == 0:
        return f"execute_new_{c}_cached_{g}"
    if names.step_form == 1:
        return f"execute_context_{c}({ct})_generation_{g}({gt})"
    attended = batch.cached
    return (
        f"execute_{batch.tokens}_context_{c}(sq{ct}sk{ct}sqsq{ct}sqsk{ct})"
        f"_generation_{g}(sq{gt}sk{attended}sqsq{gt}sqsk{attended})"
    )
