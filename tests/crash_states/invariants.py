"""What must hold after any power cut: nothing out that is not paid for, nobody above the cap, and a way on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexveil.ledger.amounts import NANO
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.verification import verify
from tests.crash_states.scenarios import CAP, LEDGER, OUTPUTS, open_ledger, release, sha256


def check(folder: Path, said: Sequence[Mapping[str, Any]]) -> list[str]:
    """Open the ledger of a folder as the next release does, look at what is out, and make a release.

    Args:
        said: what the recorded process had said before the power cut.

    Returns:
        What does not hold, and what the ledger refused to do, in its words.
    """
    found: list[str] = []
    wrote = {one["wrote"]: one["sha256"] for one in said if "wrote" in one}
    left = {one.get("left", one.get("published")): Counter(one["subjects"]) for one in said if "subjects" in one}
    try:
        out = _visible(folder, wrote, found)
        with open_ledger(folder) as ledger:
            _paid(ledger, left | out | _visible(folder, wrote, found), found)
        for name in (one["published"] for one in said if "published" in one):
            if not (folder / OUTPUTS / f"{name}.txt").exists():
                found.append("an output is gone that had been published")
        found += [f"left: {path.name}" for path in (folder / OUTPUTS).glob(".*")]
        _verified(folder, found)
        release(folder, lambda _: None, "next", ["ana", "ben", "cyn"] * CAP)
        with open_ledger(folder) as ledger:
            _paid(ledger, left | _visible(folder, wrote, found), found, is_full=True)
        _verified(folder, found)
    except Exception as error:  # a refusal, or a fault
        found.append(f"{type(error).__name__}: {error}".replace(str(folder), "FOLDER"))
    return found


def _visible(folder: Path, wrote: Mapping[str, str], found: list[str]) -> dict[str, Counter[str]]:
    """The subjects of each output that has its name. One that is not whole, or has no record, is a fault."""
    out = {}
    for path in (folder / OUTPUTS).glob("[!.]*.txt"):
        out[path.stem] = Counter(path.read_text().split())
        if sha256(path) != wrote.get(path.stem, sha256(path)):
            found.append("an output is not whole")
        if not path.with_name(f"{path.name}.record.json").exists():
            found.append("an output has no record")
    return out


def _paid(ledger: Ledger, out: Mapping[str, Counter[str]], found: list[str], is_full: bool = False) -> None:
    spent: Counter[str] = Counter()
    for subjects in out.values():
        spent.update(subjects)
    for subject in ("ana", "ben", "cyn"):
        rows = ledger.database.rows("select nano from balances where subject = ?", (ledger.hasher.one(subject),))
        balance = rows[0][0] / NANO if rows else 0
        if spent[subject] > balance:
            found.append(f"{spent[subject] - balance:g} of {subject} is out and not paid for")
        if spent[subject] > CAP or balance > CAP:
            found.append(f"{subject} is above the cap")
        if is_full and balance != CAP:
            found.append(f"{subject} could not spend what was left")


def _verified(folder: Path, found: list[str]) -> None:
    records = list((folder / OUTPUTS).glob("[!.]*.record.json"))
    found += [f"verify: {problem.what}" for problem in verify(folder / LEDGER, records).problems]
