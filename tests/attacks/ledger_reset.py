"""Spend more than a cap: remove the ledger's folder, bring an older copy of it back, or edit its
database."""

import json
import shutil
import sqlite3
from pathlib import Path

from tests.attacks.attacker import lexveil, privatize, words_of, write_rows
from tests.tasks.changing import configure

BUDGET = 10.0
ALLOWED = 2  # documents of one subject, by the cap
REMOVED = "its folder was removed"
OLDER = "an older copy was brought back"
WAYS: dict[str, list[str]] = {  # SQL of each
    REMOVED: [],
    OLDER: [],
    "a balance was set to 0": ["update balances set nano = 0"],
    "balances were removed with what they are the sum of": [
        "delete from balances",
        "delete from spends",
    ],
    "the end of the chain was cut with all that came of it": [
        "delete from entries where seq > 1",
        "delete from releases",
        "delete from files",
        "delete from spends",
        "delete from balances",
    ],
}


def spent() -> float:
    """Epsilon of all subjects, as the ledger has it."""
    code, out, _ = lexveil("ledger", "show", "--json")
    return float(json.loads(out)["spent"]) if code == 0 else 0.0


def limit(project: Path) -> None:
    """Write a cap of ``ALLOWED`` documents into lexveil.toml."""
    before = spent()
    assert release(project, "zoe", "measured")
    cap = (ALLOWED + 0.5) * (spent() - before)
    configure(project, ledger={"cap": cap})


def release(project: Path, subject: str, name: str) -> bool:
    """Return whether a document of a subject is published."""
    word = next(word for word in words_of(project) if word.isalpha())
    source = write_rows(project / f"{name}.jsonl", [{"who": subject, "text": f"{word} {word}"}])
    out = project / f"{name}_out.jsonl"
    code, _ = privatize(source, out, "--subject-column", "who", "--document-budget", BUDGET)
    return code == 0 and out.stat().st_size > 0


def attack(project: Path) -> bool:
    """Return whether any document is published above the cap."""
    limit(project)
    ledger = project / ".lexveil/ledger"
    came_out = 0
    older, whole = (project / name for name in ("older", "whole"))
    for number, copy in enumerate((older, whole)):
        assert release(project, "ben", f"allowed_{number}")
        shutil.copytree(ledger, copy)
    assert not release(project, "ben", "more"), "the cap withholds nothing"
    for number, (what, statements) in enumerate(WAYS.items()):
        shutil.rmtree(ledger, ignore_errors=True)
        if what != REMOVED:
            shutil.copytree(older if what == OLDER else whole, ledger)
        if statements:
            con = sqlite3.connect(ledger / "ledger.sqlite")
            con.executescript("; ".join(statements))
            con.close()
        happened = release(project, "ben", f"above_{number}")
        print(f"a document above the cap {'came out' if happened else 'was refused'} after {what}")
        came_out += happened
    return came_out > 0
