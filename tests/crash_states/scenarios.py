"""Scenarios to record: releases of a few lines each, in a process that reports the output that has
left it, with faults on demand.

python -m tests.crash_states.scenarios ROOT MARKS before|during NAME[:FAULT]...
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lexveil.release.ledger import anchor, database, ledger, output_files, transaction
from lexveil.release.ledger.ledger import Ledger

CAP = 3  # documents of one subject, each of which costs 1
LEDGER = "kept/ledger"
OUTPUTS = "outputs"
ANCHOR = "anchor.json"

Say = Callable[[dict[str, Any]], None]
Action = Callable[[], None]


def release(
    folder: Path,
    say: Say,
    name: str,
    subjects: list[str],
    to: str = "published",
    meanwhile: Action = lambda: None,
) -> None:
    """One release of two files, as far as ``to``: one line for each document that is not withheld.

    Args:
        meanwhile: what others do between noise and ``written``.
    """
    output = folder / OUTPUTS / f"{name}.txt"
    record = output.with_name(f"{output.name}.record.json")
    hidden = {path: path.with_name(f".partial-{path.name}") for path in (output, record)}
    with open_ledger(folder) as opened, opened.begin({"name": name}, hidden.values()) as begun:
        begun.request(subjects, np.ones(len(subjects)))
        withheld = begun.reserve(1.0, CAP).withheld(0, len(subjects)).tolist()
        lines = [subject for subject, out in zip(subjects, withheld, strict=True) if not out]
        if to == "reserved":
            raise KeyboardInterrupt
        begun.spend()
        say({"left": name, "subjects": lines})  # noise may be drawn and bytes go to standard output
        if to == "stream":
            begun.commit()
            return
        output_files.make_folder(output.parent)
        for line in lines:  # buffered by no one: each line is a write of its own
            with hidden[output].open("a") as file:
                file.write(f"{line}\n" + " " * 3000 + "\n")
        say({"wrote": name, "sha256": sha256(hidden[output])})
        hidden[record].write_text(json.dumps({"release": {"id": begun.id, "head": begun.head}}))
        if to == "aborted":
            raise KeyboardInterrupt
        meanwhile()
        begun.written([(path, final, sha256(path)) for final, path in reversed(hidden.items())])
        begun.publish()
    say({"published": name, "subjects": lines})


def open_ledger(folder: Path) -> Ledger:
    """The ledger, checked against its anchor."""
    return Ledger.open(folder / LEDGER, anchor=folder / ANCHOR)


def sha256(file: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


first = partial(release, name="1", subjects=["ana", "ben", "ana"])  # makes the ledger
second = partial(release, name="2", subjects=["ana", "cyn", "ana", "ben"])  # which the cap cuts


def together(folder: Path, say: Say) -> None:
    """Run two releases that overlap."""
    third = partial(release, folder, say, "3", ["cyn", "ben", "cyn", "cyn"])
    release(folder, say, "2", ["ana", "cyn"], meanwhile=third)


def interrupted(folder: Path, say: Say, to: str) -> None:
    """Interrupted before noise is drawn, or when all is written."""
    with suppress(KeyboardInterrupt):
        release(folder, say, "2", ["ana", "cyn"], to=to)


def died(folder: Path, say: Say, where: tuple[Any, str], after: int) -> None:
    """A second release, in a child that kills itself after some calls of a function."""
    first(folder, say)
    calls = iter(range(after))
    call = getattr(*where)

    def counted(*arguments: Any, **more: Any) -> Any:
        result = call(*arguments, **more)
        if next(calls, None) == after - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    if (child := os.fork()) == 0:
        with mock.patch.object(*where, counted):
            second(folder, say)
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def recovers(folder: Path, say: Say) -> None:
    """The next to open the ledger puts right what a killed process left."""
    open_ledger(folder).close()


# What was done before, and what is recorded.
SCENARIOS: dict[str, tuple[Callable[[Path, Say], None], Callable[[Path, Say], None]]] = {
    "first": (lambda folder, say: None, first),
    "second": (first, second),
    "together": (first, together),
    "stream": (first, partial(release, name="2", subjects=["ana", "cyn", "ana"], to="stream")),
    "given back": (first, partial(interrupted, to="reserved")),
    "aborted": (first, partial(interrupted, to="aborted")),
    # Everything was written and the ledger did not know it; the first file was renamed.
    "recovers reserved": (partial(died, where=(transaction, "sync"), after=2), recovers),
    "recovers written": (partial(died, where=(os, "replace"), after=1), recovers),
}


def _no_sync_of_files(path: Path) -> None:
    if path.is_dir():
        real_sync(path)


def _no_sync_of_folders(path: Path) -> None:
    if not path.is_dir():
        real_sync(path)


def _synchronously_full(con: Any) -> None:
    con.execute("pragma journal_mode = delete")
    con.execute("pragma synchronous = full")


def _spent_lazily(release: Any) -> None:
    release._database.con.execute("pragma synchronous = off")
    real_spend(release)
    release._database.con.execute("pragma synchronous = extra")


@contextmanager
def _anchored_first(self: database.Database) -> Iterator[Any]:
    with real_transaction(self) as con:
        yield con
        if self.guard is not None:
            self.guard.write(
                *con.execute("select seq, hash from entries order by seq desc limit 1").fetchone()
            )


real_transaction = database.Database.transaction
real_sync = output_files.sync
real_spend = transaction.Transaction.spend
SYNCS = [(module, "sync") for module in (anchor, ledger, output_files, transaction)]
# Faults that the simulation has to see, by name: what is replaced by what.
FAULTS: dict[str, tuple[list[tuple[Any, str]], Any]] = {
    "outputs are not synced before they are renamed": (SYNCS, _no_sync_of_files),
    "folders are not synced": (SYNCS, _no_sync_of_folders),
    "pragma synchronous = full": ([(database, "durable")], _synchronously_full),
    "noise is drawn when what it costs is not on the disk": (
        [(transaction.Transaction, "spend")],
        _spent_lazily,
    ),
    "the anchor is written before the ledger": (
        [(database.Database, "transaction")],
        _anchored_first,
    ),
}


@contextmanager
def fault(name: str) -> Iterator[None]:
    """Work with a fault; with none if it has no name."""
    targets, wrong = FAULTS[name] if name else ([], None)
    patches = [mock.patch.object(*target, wrong) for target in targets]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def main() -> None:
    """Carry out scenarios, each in a folder of its own, or what is before them, and say where each
    ends."""
    root = Path(sys.argv[1])
    marks = Path(sys.argv[2])
    phase = sys.argv[3]
    names = sys.argv[4:]
    said = marks.open("a", buffering=1, encoding="utf-8")
    for name in names:

        def say(what: dict[str, Any], name: str = name) -> None:
            said.write(json.dumps({**what, "of": name} if phase == "before" else what) + "\n")

        scenario, _, wrong = name.partition(":")
        folder = root / folder_of(name)
        before, during = SCENARIOS[scenario]
        if phase == "before":
            folder.mkdir()
            before(folder, say)
            continue
        with fault(wrong):
            during(folder, say)
        say({"end": name})


def folder_of(name: str) -> str:
    """The folder of a scenario with a fault."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


if __name__ == "__main__":
    main()
