"""Releases that are killed at any moment, several at once, and what must hold of their outputs all the same.

Children are forked from one warm parent, which has no other thread, and do what a release does against the same few
subjects; each dawdles at a random point, inside transactions and between renames too, and gets SIGKILL a random time
after it says that it is there, or simply after a random time. What is then checked is counted from the outputs
themselves, not taken from the ledger.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lexveil.ledger import chain
from lexveil.ledger.amounts import NANO
from lexveil.ledger.ledger import DATABASE, Ledger
from lexveil.ledger.verification import verify
from lexveil.runtime.hashes import sha256

CAP = 6  # documents of one subject
SUBJECTS = 3  # of a round; new ones every ROUNDS rounds, because a cap lasts for ever
ROUNDS = 5
DAWDLE = 0.06  # seconds at one point of a child's way
PATIENCE = 2.0  # seconds to wait for a child to get there
POINTS = (
    "start", "open", "asked", "reserved", "spent", "partial", "partials", "written", "committed", "append", "replace"
)  # fmt: skip

# What a subject has spent on releases that drew noise and published nothing.
FAILED = (
    "select coalesce(sum(spends.nano), 0) from spends inner join releases on releases.number = spends.release "
    "where releases.state = 'failed' and spends.subject = ?"
)


def run(kills: int, folder: Path, seed: int) -> dict[str, Any]:
    """Kill that many children and check the ledger and outputs after each few.

    Returns:
        ``died_in``: how many died in which state; ``recovered``: what became of them; ``violations``.
    """
    rng = random.Random(seed)
    outputs = folder / "outputs"
    outputs.mkdir(parents=True)
    with Ledger.open(folder / "ledger"):
        pass
    died_in: Counter[str] = Counter()
    recovered: Counter[str] = Counter()
    checked = Checked(folder / "ledger", outputs, "*.txt", lambda path: path.read_text().splitlines())
    number = round_number = 0
    while sum(died_in.values()) < kills:
        cohort = [f"subject-{round_number // ROUNDS}-{n}" for n in range(SUBJECTS)]
        born: dict[int, tuple[int, int]] = {}
        for _ in range(min(rng.choice((1, 1, 2, 3)), kills - sum(died_in.values()))):
            number += 1
            reads, writes = os.pipe()
            pid = fork(partial(_release, folder / "ledger", outputs, number, cohort, rng.random(), writes))
            os.close(writes)
            born[pid] = (number, reads)
        killed = []
        for pid, (child, reads) in born.items():
            if rng.random() < 0.8:  # else at any time, before it reaches its point too
                select.select([reads], [], [], PATIENCE)
            time.sleep(rng.uniform(0, 1.5 * DAWDLE))
            os.kill(pid, signal.SIGKILL)
            os.close(reads)
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                killed.append(child)
            elif status:
                # As it would be if another had taken its living release for dead.
                checked.violations.append(f"child {child} ended with an error, and not by being killed")
        states = states_of(folder / "ledger" / DATABASE)
        died_in.update(states.get(child, "not begun") for child in killed)
        recovered.update(checked.round(cohort))
        round_number += 1
        if round_number % 20 == 0:
            checked.all()
    checked.all()
    return {
        "kills": sum(died_in.values()),
        "children": number,
        "died_in": dict(died_in),
        "recovered": dict(recovered),
        "outputs": len(checked.seen),
        "violations": checked.violations,
    }


def fork(work: Callable[[], None]) -> int:
    """Do some work in a child of this process; its number."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def _release(folder: Path, outputs: Path, number: int, cohort: list[str], seed: float, reached: int) -> None:
    """What a child does: one release, two outputs."""
    rng = random.Random(seed)
    where = rng.choice(POINTS)
    _slow_down(rng, where, reached)

    def dawdle(point: str) -> None:
        if point == where:
            os.write(reached, b".")
            time.sleep(rng.uniform(0.5, 1) * DAWDLE)

    text, record = outputs / f"{number}.txt", outputs / f"{number}.txt.record.json"
    partials = {path: path.with_name(f".{path.name}.partial") for path in (text, record)}
    dawdle("start")
    with Ledger.open(folder) as ledger, ledger.begin({"child": number}, partials.values()) as release:
        dawdle("open")
        subjects = rng.choices(cohort, k=rng.randint(1, 4))
        release.request(subjects, np.ones(len(subjects)))
        dawdle("asked")
        withheld = release.reserve(1.0, CAP).withheld(0, len(subjects))
        dawdle("reserved")
        release.spend()
        dawdle("spent")
        lines = [subject for subject, out in zip(subjects, withheld, strict=True) if not out]
        partials[text].write_text("".join(f"{line}\n" for line in lines))
        dawdle("partial")
        partials[record].write_text(json.dumps({"release": {"id": release.id, "head": release.head}}))
        dawdle("partials")
        release.written([(partial, final, sha256(partial)) for final, partial in partials.items()])
        dawdle("written")
        release.publish()
        dawdle("committed")


def _slow_down(rng: random.Random, where: str, reached: int) -> None:
    """Dawdle inside transactions, or between renames, in this process."""
    if where == "append":
        append, place, calls = chain.append, rng.randrange(4), iter(range(1000))

        def slow_append(*arguments: Any) -> chain.Entry:
            entry = append(*arguments)
            if next(calls) == place:
                os.write(reached, b".")
                time.sleep(rng.uniform(0.5, 1) * DAWDLE)
            return entry

        mock.patch.object(chain, "append", slow_append).start()
    if where == "replace":
        replace = os.replace

        def slow_replace(*arguments: Any) -> None:
            replace(*arguments)
            os.write(reached, b".")
            time.sleep(rng.uniform(0.3, 0.6) * DAWDLE)

        mock.patch.object(os, "replace", slow_replace).start()


def states_of(database: Path) -> dict[int, str]:
    """The state in the ledger of each child's release, before anything is put right."""
    con = sqlite3.connect(database)
    try:
        rows = con.execute(
            "select entries.payload, releases.state from releases "
            "inner join entries on entries.release = releases.id and entries.kind = 'opened'"
        ).fetchall()
    finally:
        con.close()
    return {json.loads(payload)["about"]["child"]: state for payload, state in rows}


class Checked:
    """What must hold, round after round.

    Args:
        folder: of the ledger.
        outputs: the folder of all outputs.
        pattern: of an output's name.
        subjects_of: whom the documents of an output are about.
    """

    def __init__(self, folder: Path, outputs: Path, pattern: str, subjects_of: Callable[[Path], list[str]]) -> None:
        self.folder, self.outputs, self.pattern, self.subjects_of = folder, outputs, pattern, subjects_of
        self.seen: set[Path] = set()
        self.violations: list[str] = []
        self._spent: Counter[str] = Counter()

    def round(self, cohort: list[str]) -> list[str]:
        """Put right what the killed left and check what is new; what became of each release that was put right."""
        with Ledger.open(self.folder) as ledger:
            done = [f"{one.was}, {one.now}" for one in ledger.recovered]
            self.violations += [str(one) for one in ledger.recovered if one.notes]
            self.violations += [f"left: {path}" for path in self.outputs.iterdir() if path.name.startswith(".")]
            for path in set(self.outputs.glob(self.pattern)) - self.seen:
                self.seen.add(path)
                self._output(path, ledger)
            for subject in cohort:
                rows = ledger.database.rows(
                    "select nano from balances where subject = ?", (ledger.hasher.one(subject),)
                )
                balance = rows[0][0] if rows else 0
                if self._spent[subject] > CAP:
                    self.violations.append(f"{subject}: {self._spent[subject]} documents are out, the cap is {CAP}")
                ((failed,),) = ledger.database.rows(FAILED, (ledger.hasher.one(subject),))
                if balance != self._spent[subject] * NANO + failed:
                    self.violations.append(
                        f"{subject}: {self._spent[subject]} documents are out and {failed} were spent for nothing, but "
                        f"{balance} were paid"
                    )
        return done

    def _output(self, path: Path, ledger: Ledger) -> None:
        """One output: its record is there, its release is committed, and pays for it to the last document."""
        record = path.with_name(f"{path.name}.record.json")
        if not record.exists():
            self.violations.append(f"{path}: has no record")
            return
        name = json.loads(record.read_text())["release"]["id"]
        lines = Counter(self.subjects_of(path))
        self._spent.update(lines)
        ((number, state),) = ledger.database.rows("select number, state from releases where id = ?", (name,))
        paid = dict(ledger.database.rows("select subject, nano from spends where release = ?", (number,)))
        if state != "committed" or paid != {ledger.hasher.one(key): n * NANO for key, n in lines.items()}:
            self.violations.append(f"{path}: its release is {state} and does not pay for it")

    def all(self) -> None:
        """The whole ledger computed again, with the records of all outputs."""
        checked = verify(self.folder, sorted(self.outputs.glob("*.record.json")))
        self.violations += [f"{problem.where}: {problem.what}" for problem in checked.problems]
