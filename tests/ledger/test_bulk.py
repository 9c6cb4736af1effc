"""Bulk reservations in a file and on a real server: by drivers at once, killed at any moment, by several machines."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from few_words import spend, states
from test_crashes import together

from lexveil.ledger.ledger import Ledger
from lexveil.ledger.verification import verify
from tests.databases.conftest import database, port, sql  # noqa: F401 - fixtures
from tests.forks import Forks, forks_of

pytestmark = pytest.mark.slow

NANO = 10**9

# Releases of 1 epsilon for each of n subjects, of which each may spend 3; prints of how many documents noise is drawn.
DRIVER = """
import sys
import pyarrow as pa
from lexveil.ledger.ledger import Ledger
folder, address, n, times = sys.argv[1], sys.argv[2] or None, int(sys.argv[3]), int(sys.argv[4])
sys.stdin.read()
for _ in range(times):
    with Ledger.open(folder, address=address) as ledger, ledger.begin({}) as release:
        keys = [str(key * 7919 % n) for key in range(n)]
        parts = (keys[start : start + 1000] for start in range(0, n, 1000))
        batches = (pa.record_batch({"subject": part, "nano": pa.array([10**9] * len(part))}) for part in parts)
        reserved = release.reserve_in_bulk(batches, 1.0, 3.0)
        withheld = sum(batch.num_rows for batch in reserved.withheld_subjects())
        release.spend()
        print(n - withheld, flush=True)
        release.commit()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str | None:
    """Of a new database of a server; None is a file in the folder."""
    return None if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with forks_of("lexveil.ledger.postgresql", "adbc_driver_postgresql.dbapi", "lexveil.ledger.ledger") as made:
        yield made


def inspected(folder: Path, address: str | None, n_drawn: int) -> int:
    """What all subjects have spent, in documents: all that noise was drawn for, and none above the cap."""
    with Ledger.open(folder, address=address) as ledger:
        assert not [one for one in ledger.recovered if one.notes]
        assert set(states(ledger)) <= {"committed", "failed", "aborted"}
        sums = ledger.database.rows("select subject, cast(sum(nano) as bigint) from spends group by 1 order by 1")
        assert sums == ledger.database.rows("select subject, nano from balances order by 1")
    assert verify(folder, address=address).problems == []
    assert max((nano for _, nano in sums), default=0) <= 3 * NANO
    spent = sum(nano for _, nano in sums) // NANO
    assert spent >= n_drawn
    return spent


def test_drivers_at_once_never_overspend(forks: Forks, folder: Path, address: str | None) -> None:
    """Two want 4 epsilon each of every subject, which has 3; the server's are on machines with a salt in common."""
    folders = [folder, folder.with_name("other")]
    with Ledger.open(folder, address=address) as ledger:
        spend(ledger, "0", "elsewhere", budget=0.5)
    if address:
        folders[1].mkdir()
        (folders[1] / "locks").mkdir()
        shutil.copy(folder / "salt", folders[1])
    drivers = [[one, address or "", 5000, 4] for one in (folders if address else [folder] * 2)]
    drawn = [int(n) for out in together(forks, DRIVER, *drivers) for n in out.split()]
    assert sum(drawn) == 3 * 5000 - 1  # of 0 only two fit
    assert inspected(folder, address, sum(drawn)) == sum(drawn) + 1


@pytest.mark.nightly
def test_drivers_killed_at_any_moment(forks: Forks, folder: Path, address: str | None) -> None:
    """20 seeds; what was killed before it spent is given back, and a further release finds what is left."""
    for seed in range(20):
        place, rng, n_drawn, died = folder / str(seed), random.Random(seed), 0, 0
        if address:
            sql(address, "drop schema if exists lexveil_ledger cascade")
        Ledger.open(place, address=address).close()
        began = time.monotonic()
        forks.run(DRIVER, place, address or "", 20_000, 1)
        seconds = time.monotonic() - began
        for _ in range(5):
            fork = forks.start(DRIVER, place, address or "", 20_000, 2)
            time.sleep(rng.uniform(0, 2 * seconds))
            os.kill(fork.pid, signal.SIGKILL)
            done = fork.wait()
            n_drawn += sum(map(int, done.stdout.split()))
            died += done.returncode == -9
            inspected(place, address, n_drawn)
        assert died
        together(forks, DRIVER, [place, address or "", 20_000, 3])
        assert inspected(place, address, n_drawn) == 3 * 20_000
