"""Power cuts at any moment of a release: a few of the states that they may leave; nightly, all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash_states.disk import Born, Change, Contents, Disk, Sync, Write
from tests.crash_states.exploring import Recording, explore, n_syncs, record_all, work_folder
from tests.crash_states.recording import is_available
from tests.crash_states.scenarios import FAULTS, SCENARIOS

pytestmark = pytest.mark.slow
traced = pytest.mark.skipif(not is_available(), reason="there is no strace, or it may not watch processes")
FAULTY = [f"{'aborted' if 'given back' in fault else 'second'}:{fault}" for fault in FAULTS]


@pytest.fixture(scope="module")
def recordings() -> Iterator[dict[str, Recording]]:
    with work_folder() as work:
        yield record_all([*SCENARIOS, *FAULTY], Path(work))


@traced
@pytest.mark.parametrize(
    ("most", "at_most"), [(6, 40), pytest.param(64, None, marks=pytest.mark.nightly)], ids=["few", "all"]
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_power_cut_leaves_nothing_unpaid(
    recordings: dict[str, Recording], scenario: str, most: int, at_most: int | None
) -> None:
    n_checked, problems = explore(recordings[scenario], most, at_most)
    assert not problems and n_checked > 20 and n_syncs(recordings[scenario]) > 5


@traced
@pytest.mark.parametrize("faulty", FAULTY)
def test_the_simulation_can_fail(recordings: dict[str, Recording], faulty: str) -> None:
    assert explore(recordings[faulty], most=12, until=True)[1]


def test_what_is_not_synced_may_be_there_or_not() -> None:
    """The pattern of every careful program, step by step: write, sync, rename, sync the folder."""
    steps = [
        Born(1, False), Change(((0, "new", 1),)), Write(1, 0, b"content"), Sync(1),
        Change(((0, "file", 1), (0, "new", None))), Sync(0),
    ]  # fmt: skip
    nothing, empty, new, file = {}, {"new": b""}, {"new": b"content"}, {"file": b"content"}
    allowed = [[nothing], [nothing, empty], [nothing, empty, new], [nothing, new], [nothing, new, file], [file]]
    disk = Disk(Contents())
    for step, wanted in zip(steps, allowed, strict=True):
        disk.do(step)
        states = [tree for seed in range(20) for tree in disk.states(random.Random(seed), 64)]
        whole = [tree for tree in states if set(tree.values()) <= {b"", b"content"}]
        assert all(tree in wanted for tree in whole) and all(tree in whole for tree in wanted)


def test_data_is_torn_and_out_of_order() -> None:
    disk = Disk(Contents({1: b"a" * 1024}, {0: {"file": 1}}))
    disk.do(Write(1, 0, b"b" * 1024))
    disk.do(Write(1, 512, b"c" * 1024))
    states = {tree["file"] or b"" for seed in range(200) for tree in disk.states(random.Random(seed), 64)}
    sectors = {(content[:1], content[512:513], content[1024:1025]) for content in states}
    assert {(b"a", b"c", b"c"), (b"b", b"a", b""), (b"a", b"a", b"\0"), (b"b", b"c", b"c")} <= sectors
