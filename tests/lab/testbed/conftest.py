"""The recorded life, for all tests that look at one."""

import pytest

from teller.lab.testbed.labels import truth_of
from teller.lab.testbed.life import Lived
from teller.lab.testbed.recorded import Recorded, load
from teller.lab.truth import Truth
from tests.lab.testbed.recorded_life import unpack


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return unpack(tmp_path_factory.mktemp("life"))


@pytest.fixture(scope="session")
def ranks(life: Lived) -> list[Recorded]:
    return [load(life.control, rank) for rank in range(2)]


@pytest.fixture(scope="session")
def truth(life: Lived, ranks: list[Recorded]) -> Truth:
    return truth_of(life, ranks, "some-run", 11)
