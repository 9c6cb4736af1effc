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

from lexveil.accounting.subject_keys import KEYS_RULE
from lexveil.errors import RequestError
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


def test_a_ledger_of_the_first_rule_of_keys_takes_nothing_more(written: Path) -> None:
    """What its subjects have spent under other keys would be forgotten; it is still shown and verified."""
    with Ledger.open(written / "ledger") as ledger:
        with pytest.raises(RequestError, match=r"knows subjects by an earlier rule.*name another folder"):
            spend(ledger, "ana")
        assert balance(ledger, "ana") > 0 and [release.state for release in summary(ledger, None).releases] == [
            "committed"
        ]


def test_a_ledger_without_any_spending_takes_the_present_rule(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.database.con.execute("delete from meta where name = 'keys_rule'")
        spend(ledger, "ana")
        assert ledger.database.rows("select value from meta where name = 'keys_rule'") == [(KEYS_RULE,)]


def test_the_ledger_is_continued(written: Path) -> None:
    """In its form, once its keys are those of the present rule."""
    cost = 18_333_333_334  # of each document, nano-epsilon
    record = json.loads((written / "out.jsonl.record.json").read_text())
    with Ledger.open(written / "ledger") as ledger:
        assert ledger.recovered == []
        assert (balance(ledger, "ana"), balance(ledger, "ben")) == (2 * cost, cost)
        ledger.database.con.execute("insert into meta values ('keys_rule', ?)", (KEYS_RULE,))
        assert spend(ledger, "ana", "ben", budget=10.0, cap=40.0).n_withheld == 1  # of ana
        assert balance(ledger, "ben") == cost + 10 * 10**9
        newest, oldest = summary(ledger, None).releases
        assert (newest.state, oldest.state) == ("committed", "committed")
        assert oldest.reserved is not None
        assert oldest.reserved.epsilon == record["release"]["epsilon"]
    assert verify(written / "ledger", [written / "out.jsonl.record.json"]).holds
