"""Power cuts at any moment of a release: a few of the states that they may leave; nightly, all of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash_states import whole
from tests.crash_states.disk import Born, Change, Contents, Ext4, Posix, Sync, Write
from tests.crash_states.exploring import Recording, explore, record_all, work_folder
from tests.crash_states.recording import is_available, record
from tests.crash_states.scenarios import FAULTS, SCENARIOS

pytestmark = pytest.mark.slow
traced = pytest.mark.skipif(not is_available(), reason="there is no strace, or it may not watch processes")

FAULTY = (
    "second:outputs are not synced before they are renamed",
    "second:folders are not synced",
    "second:pragma synchronous = off",
    "second:pragma synchronous = full",
    "second:noise is drawn when what it costs is not on the disk",
    "second:the anchor is not synced",
    "second:the anchor is written before the ledger",
    "second:outputs have their names before the ledger knows",
    "aborted:files are removed after what they cost is given back",
)


EVERY_FAULT = [f"{scenario}:{fault}" for fault in FAULTS for scenario in ("second", "aborted")]


@pytest.fixture(scope="module")
def recordings() -> Iterator[dict[str, Recording]]:
    with work_folder() as work:
        yield {recording.name: recording for recording in record_all([*SCENARIOS, *EVERY_FAULT], Path(work))}


many = pytest.mark.parametrize(
    ("most", "at_most"), [(4, 60), pytest.param(64, None, marks=pytest.mark.nightly)], ids=["few", "all"]
)


@traced
@many
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_power_cut_leaves_nothing_unpaid(
    recordings: dict[str, Recording], scenario: str, most: int, at_most: int | None
) -> None:
    found = explore(recordings[scenario], most=most, at_most=at_most)
    assert found.violations == {} and found.refusals == {}
    assert found.states.total() > 20 and found.syncs > 5


@traced
@pytest.mark.parametrize("faulty", FAULTY)
def test_the_simulation_can_fail(recordings: dict[str, Recording], faulty: str) -> None:
    found = explore(recordings[faulty], most=8, until_violated=True)
    assert found.violations or found.refusals


@traced
@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_seen(recordings: dict[str, Recording], fault: str) -> None:
    seen = (explore(recordings[f"{scenario}:{fault}"], 64, until_violated=True) for scenario in ("second", "aborted"))
    assert any(explored.violations or explored.refusals for explored in seen)


@traced
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "most", "n_states"), [("privatize first", 4, 12), *((name, 64, 150) for name in whole.SCENARIOS)]
)
def test_a_power_cut_of_a_whole_release(built: Path, scenario: str, most: int, n_states: int) -> None:
    with work_folder() as work:
        (recording,) = record_all([scenario], Path(work), built)
        found = explore(recording, most=most, at_most=n_states, checked=whole.check)
    assert found.violations == {} and found.refusals == {} and found.states.total() == n_states


@traced
def test_what_any_library_writes_is_recorded(tmp_path: Path) -> None:
    """Descriptors that are inherited, duplicated and appended to, threads, holes, renames and folders."""
    code = """if True:
        import os, sys, threading
        os.chdir(sys.argv[1])
        one = os.open("one", os.O_WRONLY | os.O_CREAT, 0o600)
        if os.fork() == 0:
            os.write(one, b"child ")
            os._exit(0)
        os.wait()
        thread = threading.Thread(target=lambda: os.write(os.dup(one), b"thread "))
        thread.start()
        thread.join()
        os.writev(one, [b"two ", b"parts"])
        os.ftruncate(one, 4000)
        os.lseek(one, 0, os.SEEK_END)
        os.write(one, b"end")
        os.fsync(one)
        os.mkdir("folder")
        os.rename("one", "folder/two")
        with open("folder/two", "ab") as file:
            file.write(b"!")
        os.link("folder/two", "three")
        os.unlink("folder/two")
    """
    root = tmp_path / "root"
    root.mkdir()
    before, operations = record([sys.executable, "-c", code, str(root)], root, tmp_path / "marks")
    for operation in operations:
        before.do(operation)
    start = b"child thread two parts"
    assert before.tree() == {"folder": None, "three": start + bytes(4000 - len(start)) + b"end!"}


def test_what_is_not_synced_may_be_there_or_not() -> None:
    """The pattern of every careful program, step by step: write, sync, rename, sync the folder."""
    steps = [
        Born(1, False),
        Change(((0, "new", 1),)),
        Write(1, 0, b"content"),
        Sync(1, 3),
        Change(((0, "file", 1), (0, "new", None))),
        Sync(0, 5),
    ]
    nothing, empty, new, file = {}, {"new": b""}, {"new": b"content"}, {"file": b"content"}
    wanted = [
        [nothing], [nothing, empty], [nothing, empty, new], [nothing, new], [nothing, new, file], [file],
    ]  # fmt: skip
    journalled = [*wanted[:3], [new], [new, file], [file]]
    for model, allowed in ((Posix, wanted), (Ext4, journalled)):
        disk = model(Contents())
        for number, step in enumerate(steps):
            disk.do(number, step)
            found = [tree for seed in range(20) for tree in disk.states(random.Random(seed), 64)]
            whole = [tree for tree in found if set(tree.values()) <= {b"", b"content"}]
            assert all(tree in allowed[number] for tree in whole) and all(tree in whole for tree in allowed[number])


def test_data_is_torn_and_out_of_order() -> None:
    disk = Posix(Contents({1: b"a" * 1024}, {0: {"file": 1}}))
    disk.do(0, Write(1, 0, b"b" * 1024))
    disk.do(1, Write(1, 512, b"c" * 1024))
    found = {tree["file"] for seed in range(200) for tree in disk.states(random.Random(seed), 64)}
    sectors = {(content[:1], content[512:513], content[1024:1025]) for content in found}
    assert {(b"a", b"c", b"c"), (b"b", b"a", b""), (b"a", b"a", b"\0"), (b"b", b"c", b"c")} <= sectors
