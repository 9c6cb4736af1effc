"""A file that `lexveil privatize` wrote leads to the artifacts it was made with, by the hashes in its record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from scratch_project import Project

from lexveil.cli import main
from lexveil.lineage.release_lineage import record_beside, released
from lexveil.lineage.rendering import as_text

pytestmark = pytest.mark.slow


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def letter(built: Project, tmp_path: Path) -> Path:
    """An output outside the project, with record and ledger, made with one count and a file of a run's folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    out, ledger = folder / "out.jsonl", folder / "out.jsonl.tokens.parquet"
    out.write_text('{"text": "rewritten"}\n')
    ledger.write_bytes(b"a ledger")
    artifacts = built.artifacts()
    record = {
        "schema": 3,
        "mode": "release",
        "guarantee": {"formula": "a bound", "statement": "In words.", "because": []},
        "made_with": {
            "a.txt": sha256(artifacts["artifacts/counts/a.txt"]),
            "S1/1.0/documents.txt": sha256(artifacts["artifacts/private/S1/1.0/documents.txt"]),
        },
        "output": {"sha256": sha256(out.read_bytes()), "tokens_sha256": sha256(ledger.read_bytes())},
    }
    (folder / "out.jsonl.record.json").write_text(json.dumps(record))
    return out


def trace(file: Path, at: str | None = None) -> dict:
    record = record_beside(file)
    assert record is not None
    return released(file, record, at)


def test_it_leads_to_the_artifacts_and_on_to_the_source(built: Project, letter: Path) -> None:
    found = trace(letter)
    where = {item["name"]: (item["path"], item["stage"]) for item in found["made_with"]}
    assert where == {
        "a.txt": ("artifacts/counts/a.txt", "count@a"),
        "S1/1.0/documents.txt": ("artifacts/private/S1/1.0/documents.txt", "privatize@S1-1.0"),
    }
    assert [entry["stage"] for entry in found["chain"]] == ["privatize@S1-1.0", "count@b", "count@a", "first"]
    assert "  privacy  mode release; guarantee: a bound" in list(as_text(found))


def test_after_the_artifacts_were_made_anew_the_commit_is_found(built: Project, letter: Path) -> None:
    first = built.commit()
    (built.root / "src.txt").write_text("another source\n")
    built.dvc("repro")
    built.commit()
    found = trace(letter)
    assert found["at"] == found["commit"] == first
    assert all(item["path"] for item in found["made_with"])
    assert trace(letter, "HEAD")["made_with"][0]["path"] is None
    assert trace(letter, "HEAD")["chain"] == []


def test_output_ledger_and_chain_are_verified(built: Project, letter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["lineage", "--verify", str(letter)]) == 0
    for file in (letter, letter.with_name("out.jsonl.tokens.parquet"), built.root / "artifacts/first.txt"):
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(b"tampered")
        capsys.readouterr()
        assert main.main(["lineage", "--verify", str(letter)]) == 1
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "changed  " in line)
        assert line.endswith(file.name)
        file.write_bytes(content)
    assert main.main(["lineage", "--verify", str(letter)]) == 0
