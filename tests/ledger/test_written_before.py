"""A ledger and a privacy record of schema 2, both written by an earlier version, are read, verified and continued.

The record is that of a release of three toy documents, of the subjects ana (two of them) and ben.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from few_words import balance, spend

from lexveil.ledger.ledger import Ledger
from lexveil.ledger.statement import summary
from lexveil.ledger.verification import verify

WRITTEN = Path(__file__).parent / "written_before"
SALT = "1003d86aa2bce63d8f81f6d2bf2368032b47b99b37ec1e3509ecc90851e965c7"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder of the release, with its ledger."""
    shutil.copytree(WRITTEN, tmp_path / "release")
    ledger = tmp_path / "release/ledger"
    for folder in ("locks", "work"):
        (ledger / folder).mkdir(parents=True)
    (ledger / "salt").write_bytes(bytes.fromhex(SALT))
    (ledger / "ledger.sqlite").write_bytes(gzip.decompress((WRITTEN / "ledger.sqlite.gz").read_bytes()))
    return tmp_path / "release"


def test_the_ledger_is_verified_with_its_record(written: Path) -> None:
    checked = verify(written / "ledger", [written / "out.jsonl.record.json"])
    assert checked.problems == []
    assert (checked.entries, checked.subjects, checked.releases) == (5, 2, {"committed": 1})


def test_a_changed_record_is_found_out(written: Path) -> None:
    record = written / "out.jsonl.record.json"
    record.write_text(record.read_text() + "\n")
    (problem,) = verify(written / "ledger", [record]).problems
    assert "was changed since" in problem.what


def test_the_ledger_is_continued(written: Path) -> None:
    cost = 18_333_333_334  # of each document, nano-epsilon
    record = json.loads((written / "out.jsonl.record.json").read_text())
    with Ledger.open(written / "ledger") as ledger:
        assert ledger.recovered == []
        assert (balance(ledger, "ana"), balance(ledger, "ben")) == (2 * cost, cost)
        assert spend(ledger, "ana", "ben", budget=10.0, cap=40.0).n_withheld == 1  # of ana
        assert balance(ledger, "ben") == cost + 10 * 10**9
        newest, oldest = summary(ledger, None).releases
        assert (newest.state, oldest.state) == ("committed", "committed")
        assert oldest.reserved is not None
        assert oldest.reserved.epsilon == record["release"]["epsilon"]
    assert verify(written / "ledger", [written / "out.jsonl.record.json"]).holds
