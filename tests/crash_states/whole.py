"""Whole releases, `lexveil privatize` and `lexveil release`, with everything that they write: recorded, and checked.

Recorded as ``python -m tests.crash_states.whole ROOT MARKS BUILT NAME...``, with the artifacts of a built project.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from lexveil.ledger.amounts import NANO
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.transaction import Transaction
from tests.crash_states.invariants import Finding, refusals
from tests.crash_states.kill_checks import Expected, Found, inspect_here, outputs_of
from tests.crash_states.kills import BUDGET, TEXT, make_project
from tests.crash_states.scenarios import Say, folder_of

CAP = 3 * BUDGET  # epsilon of a subject


def _rows(number: int, subjects: str) -> str:
    """One document of each subject, whose key is a letter."""
    documents = enumerate(subjects)
    rows = [{"id": f"{number}-{n}", "who": who, "also": who, "text": TEXT} for n, who in documents]
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(folder: str, number: int, subjects: str) -> None:
    """Have documents to release."""
    Path(folder, f"{number}.jsonl").write_text(_rows(number, subjects), encoding="utf-8")


def privatize(number: int) -> str:
    """`lexveil privatize` in the current folder; the output's name."""
    from lexveil.privatization.adapters.files import privatize_file
    from lexveil.request import FileRequest

    source, output = Path("sources", f"{number}.jsonl"), Path("outputs", f"{number}.jsonl")
    request = FileRequest(
        mechanism="madlib",
        strategy="S3",
        document_budget=BUDGET,
        max_token_epsilon=BUDGET,
        subject_column="who",
        workers=1,
    )
    privatize_file(source, output, request)
    return str(output)


def release() -> str | None:
    """`lexveil release` in the current folder; the folder of what it released."""
    from lexveil.inbox.run import release_inbox

    report = release_inbox()
    return f"releases/{report.release}" if report.release else None


def _privatized() -> None:
    put("sources", 1, "abaa")
    privatize(1)
    put("sources", 2, "acab")


def _released() -> None:
    put("inbox", 1, "abaa")
    release()
    put("inbox", 2, "acab")


def _withdrawing() -> None:
    _released()
    Path("inbox/withdrawn.txt").write_text("1-0\n", encoding="utf-8")


# What was done before, and what is recorded.
SCENARIOS: dict[str, tuple[Callable[[], None], Callable[[], str | None]]] = {
    "privatize first": (partial(put, "sources", 2, "aab"), partial(privatize, 2)),
    "privatize": (_privatized, partial(privatize, 2)),
    "release first": (partial(put, "inbox", 2, "aab"), release),
    "release": (_released, release),
    "release and withdraw": (_withdrawing, release),
}


def check(folder: Path, said: Sequence[Mapping[str, Any]]) -> Finding:
    """Open the ledger as the next release does, look at what is out, and make a release of either kind."""
    found, back = Finding(), Path.cwd()
    os.chdir(folder)
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere), refusals(found):
            _inspected(folder, said, found)
            if "privatize" in folder.name:
                put("sources", 9, "abc")
                privatize(9)
            else:
                put("inbox", 9, "abc")
                release()
            _inspected(folder, said, found)
    finally:
        os.chdir(back)
    return found


def _inspected(folder: Path, said: Sequence[Mapping[str, Any]], found: Finding) -> None:
    inspected = Found()
    inspect_here(Expected(folder, int(CAP * NANO), n_killed=1), inspected)
    found.violations += inspected.violations
    for one in said:
        if "published" in one and one["published"] not in outputs_of(folder):
            found.violations.append("an output is gone that had been published")
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        ((spent,),) = ledger.database.rows("select coalesce(sum(nano), 0) from balances")
    if spent < sum(one.get("spent", 0) for one in said):
        found.violations.append("noise was drawn that nobody pays for")


def main() -> None:
    """Carry out scenarios, each in a project of its own, and say where each begins."""
    root, marks, built, names = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    said = marks.open("a", buffering=1, encoding="utf-8")

    def say(what: dict[str, Any]) -> None:
        said.write(json.dumps(what) + "\n")

    with mock.patch.object(Transaction, "spend", _saying(say)):
        for name in names:
            folder = root / folder_of(name)
            make_project(folder, built, CAP)
            os.chdir(folder)
            before, during = SCENARIOS[name]
            before()
            say({"begin": name})
            if published := during():
                say({"published": published})
            say({"end": name})


def _saying(say: Say) -> Callable[[Transaction], None]:
    spend = Transaction.spend

    def spending(self: Transaction) -> None:
        spend(self)
        rows = self._database.rows("select coalesce(sum(nano), 0) from spends where release = ?", (self._number,))
        say({"spent": rows[0][0]})

    return spending


if __name__ == "__main__":
    main()
