"""What an archive publishes is a function of outputs, parameters, disclosed structure and what became of each row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from lexveil.artifacts.model import Model
from lexveil.inbox.run import release_inbox
from tests.same_noise import Clock, SameAnswers, published, sources
from tests.shared_trees import stand_beside

pytestmark = pytest.mark.slow


def archived(texts: Sequence[str], project: Path) -> dict[str, bytes]:
    """Three releases: new documents, one of them changed, and a document withdrawn."""
    inbox = project / "inbox"
    inbox.mkdir()
    params = yaml.safe_load((project / "params.yaml").read_text())
    gate = {"min_coverage": 0.0, "max_unprotected": 1.0, "max_length_ratio": None, "pii": True}
    params["inbox"] |= {"source": "inbox", "document_budget": 5.0, "gate": gate, "ids": "pseudonym"}
    params["inbox"] |= {"strategy": "S3", "subject_column": "who"}
    params["policy"] |= {"stopwords": "perturb", "punctuation": "drop", "oov": "sample"}
    (project / "params.yaml").write_text(yaml.safe_dump(params))

    def put(*rows: int) -> None:
        documents = [{"id": number, "who": number % 2, "text": texts[row]} for number, row in enumerate(rows)]
        (inbox / "in.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
        release_inbox()

    put(0, 1, 2, 3, 4, 6)
    put(0, 1, 2, 3, 4, 6, 7)
    put(0, 1, 2, 3, 7, 6, 4)
    (inbox / "withdrawn.txt").write_text("1\n")
    release_inbox()
    return published(project / "releases")


def test_an_archive_shows_of_its_sources_only_what_is_disclosed(listed: Path, tmp_path: Path, monkeypatch) -> None:
    same = SameAnswers(monkeypatch)
    for module in ("inbox.run", "checks.validation"):
        monkeypatch.setattr(f"lexveil.{module}.datetime", Clock)
    made = []
    for number, texts in enumerate(sources(Model.load(listed))):
        project = stand_beside(listed, tmp_path / str(number) / "project", monkeypatch)
        same.restart()
        made.append(archived(texts, project))
    first, second = made
    assert first["names"].count(b"documents.parquet.record.json") == 3
    assert [name for name in first | second if first.get(name) != second.get(name)] == []
