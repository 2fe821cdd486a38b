"""What ONNX Runtime says is what torch says; training asks what it should."""

from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
import pytest

from teller.ingest.run import Silent
from teller.learning import making
from teller.models.calibration import curve
from teller.models.listening import SHIPPED
from teller.models.samples.batch import batch
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import class_names
from teller.models.samples.sample import VERSION
from teller.models.samples.words import Words
from teller.models.scorer import Card, Scorer

pytestmark = [
    pytest.mark.slow,
    # of torch and its exporter, about their own future
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.skipif(
        find_spec("torch_geometric") is None, reason="the extra `learn` is not installed"
    ),
]
RUNS = Path(__file__).parents[2] / "data" / "runs" / "simulated"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> list[Labelled]:
    """Give all committed simulated runs."""
    return making.runs_of([RUNS], tmp_path_factory.mktemp("kept"), Silent(), print)


@pytest.fixture(scope="module")
def words(labelled: list[Labelled]) -> Words:
    """Give vectors drawn at random for half of the strings."""
    strings = sorted({str(s) for one in labelled for s in one.samples.texts})[::2]
    vectors = np.random.default_rng(0).normal(size=(len(strings), 384)).astype(np.float32)
    return Words(strings, vectors)


def test_an_exported_network_says_what_it_said_in_torch(
    labelled: list[Labelled], words: Words, tmp_path: Path
) -> None:
    from teller.models.learn import export, training
    from teller.models.learn.config import Config
    from teller.models.learn.network import Network

    config = Config(hidden=32)
    net = Network(training.sizes_of(labelled[0], words, config)).eval()
    example = labelled[0].samples
    export.export(net, batch(example, words.of(example.texts.tolist())), tmp_path)
    card = Card(version=VERSION, classes=list(class_names()), hidden=config.hidden,
                trained_on={}, config={}, curve=curve([]))  # fmt: skip
    (tmp_path / making.CARD).write_bytes(msgspec.json.encode(card))
    words.save(tmp_path / making.WORDS)
    scorer = Scorer(tmp_path)
    for one in labelled:  # other shapes than the example's
        whole = batch(one.samples, words.of(one.samples.texts.tolist()))
        assert export.difference(net, whole, scorer.raw(whole)) < 1e-4


def test_the_network_that_ships_says_what_it_said_in_torch(labelled: list[Labelled]) -> None:
    from safetensors.torch import load_file

    from teller.models.learn import export, training
    from teller.models.learn.config import Config
    from teller.models.learn.network import Network

    scorer = Scorer(SHIPPED)
    kept = {n: v for n, v in scorer.card.config.items() if n in Config.__struct_fields__}
    net = Network(training.sizes_of(labelled[0], scorer.words, Config(**kept)))
    net.load_state_dict(load_file(SHIPPED / "network.safetensors"))
    for one in labelled:
        whole = batch(one.samples, scorer.words.of(one.samples.texts.tolist()))
        assert export.difference(net, whole, scorer.raw(whole)) < 1e-3


def test_scores_of_parts_are_those_of_the_whole(
    labelled: list[Labelled], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = Scorer(SHIPPED)
    one = max(labelled, key=lambda r: len(r.samples.step_index)).samples
    whole = scorer.score(one)
    monkeypatch.setattr("teller.models.scorer.AT_ONCE", 5)
    parts = scorer.score(one)
    for name in ("chance", "classes", "rank", "op"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-3)


def test_the_right_rows_are_asked_to_stand_first_in_their_own_iteration() -> None:
    import torch

    from teller.models.learn.losses import losses

    def cost(rank: list[float]) -> float:
        state, klass = torch.zeros(2), torch.zeros(2, 3)
        want = {
            "state": torch.tensor([1, 0]), "klass": torch.tensor([2, -1]),
            "rank": torch.tensor([1, 0, -1, -1]), "op": torch.tensor([-1, -1]),
            "weight": torch.ones(2),
        }  # fmt: skip
        said = (state, klass, torch.tensor(rank), torch.zeros(2))
        of_rank, of_op = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1])
        found = losses(said, want, of_rank, of_op, torch.ones(3))
        assert float(found["op"]) == 0  # nothing is asked
        return float(found["rank"])

    right, wrong = cost([2.0, -2.0, 9.0, 9.0]), cost([-2.0, 2.0, 9.0, 9.0])
    assert right < 0.2 < wrong
