"""Bulk reservations in a file and on a real server: by drivers at once, killed at any moment, by
several machines."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from few_words import NANO, asked, states
from test_crashes import together

from lexveil import Ledger, RequestError
from lexveil.release.ledger.verification import verify
from tests.databases.conftest import database, port, sql  # noqa: F401
from tests.forks import forks_of

pytestmark = pytest.mark.slow

N = 5000  # subjects

# Releases of 1 epsilon for each of n subjects, of which each may spend 3, every other one in bulk.
# Prints of how many documents noise is drawn, and at the end how many releases it put right; or
# dies when it has reserved.
DRIVER = """
import os, sys
import numpy as np
import pyarrow as pa
from lexveil.release.ledger.ledger import Ledger
folder, address, n, times, *dies = sys.argv[1:]
address = address or None
n = int(n)
times = int(times)
sys.stdin.read()
with Ledger.open(folder, address=address) as ledger:
    for number in range(times):
        with ledger.begin({}) as release:
            keys = [str(key * 7919 % n) for key in range(n)]
            if number % 2:
                release.request(keys, np.ones(n))
                withheld = release.reserve(1.0, 3.0).n_withheld
            else:
                parts = (keys[start : start + 1000] for start in range(0, n, 1000))
                columns = ({"subject": part, "nano": [10**9] * len(part)} for part in parts)
                batches = map(pa.record_batch, columns)
                reserved = release.reserve_in_bulk(batches, 1.0, 3.0)
                withheld = sum(batch.num_rows for batch in reserved.withheld_subjects())
            if dies:
                os.kill(os.getpid(), 9)
            release.spend()
            print(n - withheld, flush=True)
            release.commit()
    print(f"put right: {len(ledger.recovered)}")
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request):
    """Address of a new database on a server; None is a file in the folder."""
    return None if request.param == "sqlite" else request.getfixturevalue("database")


@pytest.fixture(scope="module")
def forks():
    with forks_of(
        "lexveil.release.ledger.postgresql",
        "adbc_driver_postgresql.dbapi",
        "lexveil.release.ledger.ledger",
    ) as made:
        yield made


def inspected(folder, address, n_drawn):
    """Return the spending of all subjects in documents, and the number of recovered releases by
    their state. Check that spending covers all drawn noise, and that no subject is above the cap.
    """
    with Ledger.open(folder, address=address) as ledger:
        assert not [one for one in ledger.recovered if one.notes]
        assert set(states(ledger)) <= {"committed", "failed", "aborted"}
        sums = ledger.database.rows(
            "select subject, cast(sum(nano) as bigint) from spends group by 1 order by 1"
        )
        assert sums == ledger.database.rows("select subject, nano from balances order by 1")
    assert verify(folder, address=address).problems == []
    assert max((nano for _, nano in sums), default=0) <= 3 * NANO
    spent = sum(nano for _, nano in sums) // NANO
    assert spent >= n_drawn
    return spent, Counter(one.was for one in ledger.recovered)


@dataclass(frozen=True)
class Raced:
    """A ledger after two drivers, each of which wanted 4 epsilon of every subject, which has 3; the
    server's are on machines with a salt in common.

    Attributes:
        said: lines of each driver.
        anchor: what is known of the ledger from before them.
    """

    folder: Path
    address: str | None
    anchor: Path
    said: list[list[str]]

    @property
    def n_drawn(self):
        return sum(int(number) for lines in self.said for number in lines[:-1])


@pytest.fixture
def raced(forks, folder, address):
    """Before them, a driver was killed that had reserved, and subject 0 spent 1 epsilon, as did
    another.
    """
    anchor = folder.with_name("anchor.json")
    folders = [folder, folder.with_name("other") if address else folder]
    with Ledger.open(folder, address=address, anchor=anchor) as ledger, ledger.begin({}) as release:
        asked(release, "0", "elsewhere")
        release.spend()
        release.commit()
    if address:
        (folders[1] / "locks").mkdir(parents=True)
        shutil.copy(folder / "salt", folders[1])
    assert forks.run(DRIVER, folder, address or "", N, 1, "dies").returncode == -9
    out = together(forks, DRIVER, *([one, address or "", N, 4] for one in folders))
    return Raced(folder, address, anchor, [text.splitlines() for text in out])


def test_drivers_at_once_never_overspend(raced):
    """Subject 0 has room for two documents only. The reservation of the killed driver is given back
    once.
    """
    assert sorted(lines[-1] for lines in raced.said) == ["put right: 0", "put right: 1"]
    assert raced.n_drawn == 3 * N - 1
    assert inspected(raced.folder, raced.address, raced.n_drawn)[0] == raced.n_drawn + 2


def test_a_ledger_of_drivers_at_once_is_verified_from_an_anchor(raced):
    checked = verify(raced.folder, address=raced.address, since=raced.anchor)
    assert (checked.problems, checked.since, checked.subjects) == ([], 5, N)
    assert checked.releases == {"aborted": 1, "committed": 8}


def test_a_changed_balance_is_found_from_an_anchor_if_the_subject_paid_since(raced):
    """A verification without the anchor finds every change."""
    with Ledger.open(raced.folder, address=raced.address) as ledger:
        for subject, is_found in (("elsewhere", False), ("0", True)):
            ledger.database.rows(
                "update balances set nano = nano - 1 where subject = ?",
                (ledger.hasher.one(subject),),
            )
            since = verify(raced.folder, address=raced.address, since=raced.anchor)
            assert since.holds is not is_found
            assert not verify(raced.folder, address=raced.address).holds


def test_a_request_that_is_refused_leaves_nothing(folder, address):
    with Ledger.open(folder, address=address) as ledger, ledger.begin({}) as release:
        with pytest.raises(RequestError, match="document 2 has no subject"):
            release.request(["0", ""], np.ones(2))
        assert asked(release, "0", "elsewhere").n_documents == 2


@pytest.mark.nightly
def test_drivers_killed_at_any_moment(forks, folder, address):
    """20 seeds, 3 kills each; what was not spent is given back, and another driver finds what is
    left."""
    began = time.monotonic()
    found = Counter[str]()
    together(forks, DRIVER, *[[folder / "spared", address or "", N, 2]] * (1 if address else 2))
    seconds = time.monotonic() - began
    for seed in range(20):
        place = folder / str(seed)
        rng = random.Random(seed)
        n_drawn = 0
        if address:
            sql(address, "drop schema if exists lexveil_ledger cascade")
        for _ in range(3):
            fork = forks.start(DRIVER, place, address or "", N, 2)
            time.sleep(rng.uniform(0, seconds))
            os.kill(fork.pid, signal.SIGKILL)
            done = fork.wait()
            # however busy the machine is, some die and some do not
            seconds *= 1.2 if done.returncode else 0.7
            n_drawn += sum(int(line) for line in done.stdout.split() if line.isdigit())
            found += inspected(place, address, n_drawn)[1]
        together(forks, DRIVER, *[[place, address or "", N, 2]] * 2)
        assert inspected(place, address, n_drawn)[0] == 3 * N
    print(f"put right: {dict(found)}")
    assert found
