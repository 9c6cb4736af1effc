"""A process that is killed anywhere: the next run finds the release or not, paid once, and ends what was begun."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from toy_inbox import WORDS, Inbox, files

from lexveil.errors import RequestError
from lexveil.inbox.archive import RECORD
from lexveil.ledger.verification import verify
from tests.forks import Forks, forks_of

pytestmark = pytest.mark.slow

DIES = 77

# Ends the process, as SIGKILL would, when a function is called for the n-th time after another has returned: before it
# does anything.
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
    replace("lexveil.ledger.transaction", after, arms)
from lexveil.inbox.run import release_inbox
release_inbox()
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with forks_of("lexveil.inbox.run", "lexveil.checks.release_suite", "lexveil.checks.validation") as made:
        yield made


def killed(forks: Forks, module: str, name: str, call: int, after: str = "") -> None:
    done = forks.run(KILLED, module, name, call, after)
    assert done.returncode == DIES, done.stderr


def sound(inbox: Inbox) -> None:
    """Nothing is left that is half written, and the ledger holds."""
    for folder in (inbox.archive, inbox.memory, inbox.root / ".lexveil/work"):
        assert not [file for file in files(folder) if "partial" in file.name]
    assert not (inbox.root / ".lexveil/work/release").exists()
    records = [
        next(release / name for name in ("record.as_released.json", RECORD) if (release / name).exists())
        for release in inbox.releases()
    ]
    assert verify(".lexveil/ledger", records).holds


@pytest.mark.parametrize(
    ("module", "name", "call", "after", "was_out", "n_paid"),
    [
        ("lexveil.inbox.selection", "register_hashes", 1, "", False, 1),
        ("lexveil.inbox.gate", "ReleaseGate._open", 1, "", False, 2),  # spent, outputs hidden
        ("lexveil.privatization.release.charge", "LedgerCharge.publish", 1, "", False, 2),  # all hidden, gate opened
        ("os", "replace", 4, "Transaction.written", True, 1),  # some of it renamed
        ("lexveil.inbox.archive", "Archive.settle", 1, "Transaction.publish", True, 1),  # nothing made of it yet
    ],
)
def test_a_release_is_there_and_paid_or_neither(
    inbox: Inbox, forks: Forks, module: str, name: str, call: int, after: str, was_out: bool, n_paid: int
) -> None:
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
        ("lexveil.inbox.archive", "_take", 2),  # out of the documents, not of their ledger
        ("lexveil.inbox.archive", "write_json", 1),  # out of both, and the record does not say so
        ("lexveil.inbox.archive", "duckdb_session.materialize", 2),  # current.parquet still has it
    ],
)
def test_a_withdrawal_that_was_begun_is_ended(inbox: Inbox, forks: Forks, module: str, name: str, call: int) -> None:
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    inbox.run()
    spent = inbox.spent()
    (inbox.folder / "withdrawn.txt").write_text("2")
    killed(forks, module, name, call)
    (inbox.folder / "withdrawn.txt").unlink()  # it was heard
    inbox.run()
    assert inbox.ids() == ["1"] == inbox.ids(inbox.releases()[0] / "documents.parquet")
    tokens = pq.read_table(inbox.memory / inbox.releases()[0].name / "documents.parquet.tokens.parquet")
    assert set(tokens.column("row").to_pylist()) == {1}
    assert inbox.record()["withdrawn"] == 1 and inbox.spent() == spent
    sound(inbox)


def test_what_is_paid_for_and_cannot_be_renamed_waits(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.put("a.jsonl", ("1", WORDS))

    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", "documents.parquet")

    with monkeypatch.context() as patch:
        for module in ("transaction", "ledger"):
            patch.setattr(f"lexveil.ledger.{module}.roll_forward", fails)
        with pytest.raises(RequestError, match="It is paid for"):
            inbox.run()
        with pytest.raises(RequestError, match="the ledger has paid for it"):
            inbox.run()
    assert (inbox.run().duplicate, inbox.ids()) == (1, ["1"])
    assert inbox.spent() == pytest.approx(40.0)
    sound(inbox)
