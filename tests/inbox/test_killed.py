"""A process that is killed anywhere: the next run finds the release or not, paid once, and ends
what was begun."""

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import nullcontext

import pyarrow.parquet as pq
import pytest
from toy_inbox import WORDS, files

from lexveil.release.inbox.archive import RECORD
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify
from tests.forks import forks_of

pytestmark = pytest.mark.slow

DIES = 77

# Ends the process, as SIGKILL would, when a function is called for the n-th time after another has
# returned: before it does anything.
KILLED = f"""
import importlib, os, sys
def replace(module, name, make):
    owner = importlib.import_module(module)
    *path, name = name.split(".")
    for one in path:
        owner = getattr(owner, one)
    setattr(owner, name, make(getattr(owner, name)))
module, name, call, after = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
calls, armed = [], [] if after else [True]
def dies(does):
    def wrapped(*given, **named):
        calls.extend(armed)
        if len(calls) == call:
            os._exit({DIES})
        return does(*given, **named)
    return wrapped
def arms(does):
    def wrapped(*given, **named):
        done = does(*given, **named)
        armed[:] = [True]
        return done
    return wrapped
replace(module, name, dies)
if after:
    replace("lexveil.release.ledger.transaction", after, arms)
from lexveil.release.inbox.run import release_inbox
release_inbox()
"""


@pytest.fixture(scope="module")
def forks():
    with forks_of(
        "lexveil.release.inbox.run",
        "lexveil.release.checks.release_suite",
        "lexveil.release.checks.validation",
    ) as made:
        yield made


def killed(forks, module, name, call, after=""):
    done = forks.run(KILLED, module, name, call, after)
    assert done.returncode == DIES, done.stderr


def sound(inbox):
    """Check that nothing is half-written, and that the ledger verifies."""
    for folder in (inbox.archive, inbox.memory, inbox.root / ".lexveil/work"):
        assert not [file for file in files(folder) if "partial" in file.name]
    assert not (inbox.root / ".lexveil/work/release").exists()
    records = [
        next(
            release / name
            for name in ("record.as_released.json", RECORD)
            if (release / name).exists()
        )
        for release in inbox.releases()
    ]
    assert verify(".lexveil/ledger", records).holds


@pytest.mark.parametrize(
    ("module", "name", "call", "after", "was_out", "n_paid"),
    [
        ("lexveil.release.inbox.selection", "register_hashes", 1, "", False, 1),
        (
            "lexveil.release.inbox.gate",
            "ReleaseGate._open",
            1,
            "",
            False,
            2,
        ),  # spent, outputs hidden
        # all hidden, gate opened
        ("lexveil.release.charge", "LedgerCharge.publish", 1, "", False, 2),
        ("os", "replace", 4, "Transaction.written", True, 1),  # some of it renamed
        # nothing made of it yet
        ("lexveil.release.inbox.archive", "Archive.settle", 1, "Transaction.publish", True, 1),
    ],
)
def test_a_release_is_there_and_paid_or_neither(
    inbox,
    forks,
    module,
    name,
    call,
    after,
    was_out,
    n_paid,
):
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    killed(forks, module, name, call, after)
    assert not (inbox.archive / "current.parquet").exists()
    report = inbox.run()
    assert (report.new, report.duplicate) == ((0, 2) if was_out else (2, 0))
    assert inbox.ids() == ["1", "2"] and len(inbox.releases()) == 1
    assert inbox.states().count("committed") == 1
    assert inbox.spent() == pytest.approx(n_paid * 2 * 40.0, rel=1e-6)
    sound(inbox)


@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        ("lexveil.release.inbox.archive", "_take", 2),  # out of the documents, not of their ledger
        (
            "lexveil.release.inbox.archive",
            "write_json",
            1,
        ),  # out of both, and the record does not say so
        (
            "lexveil.release.inbox.archive",
            "duckdb_session.materialize",
            2,
        ),  # current.parquet still has it
    ],
)
def test_a_withdrawal_that_was_begun_is_ended(inbox, forks, module, name, call):
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    inbox.run()
    spent = inbox.spent()
    (inbox.folder / "withdrawn.txt").write_text("2")
    killed(forks, module, name, call)
    (inbox.folder / "withdrawn.txt").unlink()  # it was heard
    inbox.run()
    assert inbox.ids() == ["1"] == inbox.ids(inbox.releases()[0] / "documents.parquet")
    tokens = pq.read_table(
        inbox.memory / inbox.releases()[0].name / "documents.parquet.tokens.parquet"
    )
    assert set(tokens.column("row").to_pylist()) == {1}
    assert inbox.record()["withdrawn"] == 1 and inbox.spent() == spent
    sound(inbox)


CAP = 6  # documents of a subject
RELEASE = "from lexveil.release.inbox.run import release_inbox\nrelease_inbox()\n"
FORGETS = """
from lexveil.release.ledger import reservation
reservation.write_sealed = lambda con: None
"""


def inspected(inbox):
    """Check that each release pays for each of its documents, that balances are the sums of the
    payments, and that no subject is above the cap.
    """
    paid = {}
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        assert ledger.refusal is None and not [one for one in ledger.recovered if one.notes]
        states = dict(ledger.database.rows("select id, state from releases"))
        query = (
            "select id, subject, nano from spends inner join releases on releases.number "
            "= spends.release"
        )
        for release, subject, nano in ledger.database.rows(query):
            paid.setdefault(release, Counter())[subject] = nano
        sums = sum(paid.values(), Counter[bytes]())
        assert dict(ledger.database.rows("select subject, nano from balances")) == sums
        assert max(sums.values(), default=0) <= CAP * 40.0 * 1e9
        # The ledger has put right by now what a killed process left.
        records = [file.with_name(RECORD) for file in inbox.archive.glob("*/documents.parquet")]
        for record in records:
            release = json.loads(record.read_text(encoding="utf-8"))["release"]["id"]
            subjects = Counter(
                pq.read_table(record.with_name("documents.parquet")).column("also").to_pylist()
            )
            cost = paid[release].total() // subjects.total()
            assert paid.pop(release) == {
                ledger.hasher.one(key): n * cost for key, n in subjects.items()
            }
            assert states[release] == "committed"
    assert {states[release] for release in paid} <= {"failed", "aborted"}  # paid for, and not out
    assert not [*inbox.archive.glob("*/.partial-*")]
    assert verify(".lexveil/ledger", records).holds


def kill(inbox, forks, number, rng, seconds, before=""):
    """Begin a release of a few documents and kill it; every tenth one is spared, and says how long
    they take."""
    subjects = rng.choices([f"{number // 8}-{letter}" for letter in "abc"], k=3)
    rows = [
        {"id": f"{number}-{n}", "who": who, "also": who, "text": WORDS}
        for n, who in enumerate(subjects)
    ]
    inbox.put(f"{number}.jsonl", *rows)
    started = time.monotonic()
    fork = forks.start(before + RELEASE)
    if seconds and number % 10:
        time.sleep(rng.uniform(0, seconds))
        os.kill(fork.pid, signal.SIGKILL)
    done = fork.wait()
    assert done.returncode in (0, -9), done.stderr
    return seconds if done.returncode else time.monotonic() - started


@pytest.mark.nightly
@pytest.mark.parametrize(("before", "n_runs"), [("", 500), (FORGETS, 1)])
def test_releases_killed_at_any_moment(inbox, forks, before, n_runs):
    """A run that forgets the spending of subjects on purpose is detected."""
    inbox.configure(cap=CAP * 40.0, subject_column="who", columns=["also"])
    rng = random.Random(7)
    seconds = 0.0
    with pytest.raises(AssertionError) if before else nullcontext():
        for number in range(n_runs):
            seconds = kill(inbox, forks, number, rng, seconds, before)
            inspected(inbox)
