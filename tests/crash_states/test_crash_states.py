"""Power cuts at any moment of a release: a few of the states that they may leave; nightly, all of
them."""

from pathlib import Path

import pytest

from tests.crash_states.exploring import explore, record_all, work_folder
from tests.crash_states.recording import is_available
from tests.crash_states.scenarios import FAULTS, SCENARIOS

pytestmark = pytest.mark.slow
traced = pytest.mark.skipif(
    not is_available(), reason="there is no strace, or it may not watch processes"
)
FAULTY = [f"second:{fault}" for fault in FAULTS]


@pytest.fixture(scope="module")
def recordings():
    with work_folder() as work:
        yield record_all([*SCENARIOS, *FAULTY], Path(work))


@traced
@pytest.mark.parametrize(
    ("most", "at_most"),
    [(6, 40), pytest.param(64, None, marks=pytest.mark.nightly)],
    ids=["few", "all"],
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_power_cut_leaves_nothing_unpaid(recordings, scenario, most, at_most):
    n_checked, problems = explore(recordings[scenario], most, at_most)
    assert not problems and n_checked > 20


@traced
@pytest.mark.parametrize("faulty", FAULTY)
def test_the_simulation_can_fail(recordings, faulty):
    assert explore(recordings[faulty], most=12, until=True)[1]
