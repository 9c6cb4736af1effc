"""The page for whoever receives an output: in words, from the record alone."""

import json
from pathlib import Path

import pytest

import lexveil
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.accounting.statement import statement_for_recipients

HOW = {"mechanism": "tem", "strategy": "S1", "epsilon": 6.0, "model": "toy"}
CANARY = "zorblaxium"


def flat(page):
    """The page as one line."""
    return " ".join(page.split())


def test_it_goes_with_the_output_and_follows_from_the_record(outside, cli):
    text = f"The government said no to {CANARY}."
    (outside / "in.jsonl").write_text(json.dumps({"text": text, "who": "p1"}) + "\n")
    options = ("--mechanism", "tem", "--strategy", "S1", "--epsilon", "6", "--model", "toy")
    said = cli("privatize", "in.jsonl", "-o", "out.jsonl", *options).out
    assert "out.jsonl.statement.txt, the text version of the record" in said
    page = Path("out.jsonl.statement.txt").read_text(encoding="utf-8")
    record = PrivacyRecord.model_validate_json(Path("out.jsonl.record.json").read_bytes())
    assert page == statement_for_recipients(record, "out.jsonl") and CANARY not in page
    shown = flat(page)
    assert record.output is not None and record.release is not None and record.model is not None
    for part in (record.output.sha256, record.release.id, record.model.made_of):
        assert str(part) in shown
    assert record.guarantee.statement in shown and record.guarantee.because[0][1:] in shown
    assert "Rewritten: column text." in shown
    assert len(page.splitlines()) < 75 and max(map(len, page.splitlines())) <= 96


@pytest.mark.usefixtures("outside")
def test_what_is_not_private_is_not_called_so():
    tried = lexveil.privatize(["The government said no."], **HOW, seed=1).record
    page = flat(statement_for_recipients(tried, "out.txt"))
    assert "Nothing is protected" in page and "WHAT IS GUARANTEED Nothing." in page
    assert "nobody can repeat" not in page


def test_a_copy_is_called_a_copy(outside, cli):
    (outside / "in.jsonl").write_text('{"text": "The government said no."}\n')
    none = ("--mechanism", "none", "--strategy", "none", "--mode", "experiment")
    cli("privatize", "in.jsonl", "-o", "out.jsonl", *none)
    page = flat((outside / "out.jsonl.statement.txt").read_text(encoding="utf-8"))
    assert "nothing is protected" in page and "GUARANTEED" not in page
