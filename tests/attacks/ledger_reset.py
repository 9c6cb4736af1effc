"""Spend a cap again and again: remove the ledger's folder, or bring an older copy of it back, and go on from there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from attacker import lexveil, privatize, run, words_of, write_rows

BUDGET = 10.0
ALLOWED = 2  # documents of one subject, by the cap


def spent() -> float:
    """Epsilon of all subjects, as the ledger has it."""
    code, out, _ = lexveil("ledger", "show", "--json")
    return float(json.loads(out)["spent"]) if code == 0 else 0.0


def limit(project: Path) -> None:
    """Write a cap of ``ALLOWED`` documents into params.yaml."""
    before = spent()
    assert release(project, "zoe", "measured")
    cap = (ALLOWED + 0.5) * (spent() - before)
    params = project / "params.yaml"
    params.write_text(re.sub(r"(?m)^  cap: \S+", f"  cap: {cap}", params.read_text(encoding="utf-8")), encoding="utf-8")


def release(project: Path, subject: str, name: str) -> bool:
    """Whether a document of a subject comes out."""
    word = next(word for word in words_of(project) if word.isalpha())
    source = write_rows(project / f"{name}.jsonl", [{"who": subject, "text": f"{word} {word}"}])
    out = project / f"{name}_out.jsonl"
    code, _ = privatize(source, out, "--subject-column", "who", "--document-budget", BUDGET)
    return code == 0 and out.stat().st_size > 0


def attack(project: Path) -> bool:
    """Whether anything comes out above the cap."""
    limit(project)
    ledger, copy = project / ".lexveil/ledger", project / "older"
    assert release(project, "ana", "reset_0")
    shutil.copytree(ledger, copy)
    assert release(project, "ana", "reset_1")
    assert not release(project, "ana", "reset_2"), "the cap withholds nothing"
    shutil.move(ledger, project / "gone")
    removed = release(project, "ana", "reset_3")
    shutil.rmtree(ledger, ignore_errors=True)
    shutil.move(copy, ledger)
    older = release(project, "ana", "reset_4")
    shutil.rmtree(ledger)
    shutil.move(project / "gone", ledger)
    for happened, said in ((removed, "after its folder was removed"), (older, "from an older copy")):
        print(f"a document above the cap {'came out' if happened else 'was refused'} {said}")
    return removed or older


if __name__ == "__main__":
    run(attack)
