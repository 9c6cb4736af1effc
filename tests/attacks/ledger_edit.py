"""Spend more than a cap by editing the ledger's database: balances, or the end of its chain with what came of it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from attacker import run
from ledger_reset import ALLOWED, limit, release

EDITS = {
    "a balance was set to 0": ["update balances set nano = 0"],
    "balances were removed with what they are the sum of": ["delete from balances", "delete from spends"],
    "the end of the chain was cut with all that came of it": [
        "delete from entries where seq > 1", "delete from releases", "delete from files", "delete from spends",
        "delete from balances",
    ],
}  # fmt: skip


def attack(project: Path) -> bool:
    """Whether anything comes out above the cap."""
    limit(project)
    for number in range(ALLOWED):
        assert release(project, "ben", f"edit_{number}")
    assert not release(project, "ben", "edit_more"), "the cap withholds nothing"
    database, came_out = project / ".lexveil/ledger/ledger.sqlite", 0
    shutil.copyfile(database, project / "whole.sqlite")
    for number, (what, statements) in enumerate(EDITS.items()):
        con = sqlite3.connect(database)
        for statement in statements:
            con.execute(statement)
        con.commit()
        con.close()
        happened = release(project, "ben", f"edited_{number}")
        print(f"a document above the cap {'came out' if happened else 'was refused'} after {what}")
        came_out += happened
        shutil.copyfile(project / "whole.sqlite", database)
    return came_out > 0


if __name__ == "__main__":
    run(attack)
