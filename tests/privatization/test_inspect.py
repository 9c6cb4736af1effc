"""`lexveil inspect`: what a release would do, without doing it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from asking import privatize_file

from lexveil.api import inspect
from lexveil.privatization.looking.inspect import as_text

HOW: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
TEXTS = ["The Government said: yes, Zorblax!", "", "Fire services in New South Wales  said no, Zorblax."]


@pytest.fixture
def source(project: Path, tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"text": text, "who": f"p{i % 2}"}) + "\n" for i, text in enumerate(TEXTS)))
    return file


def test_it_foretells_what_a_release_counts(source: Path, tmp_path: Path) -> None:
    shutil.rmtree(".lexveil", ignore_errors=True)
    found = inspect(source, **HOW).to_dict()
    assert {file.name for file in tmp_path.iterdir()} == {"in.jsonl", "project"}
    assert not Path(".lexveil").exists()
    done = privatize_file(source, tmp_path / "out.jsonl", **HOW)
    record, operator = done.record.to_dict(), done.operator.to_dict()
    assert found["by_class"] == operator["counts"]["by_class"]
    assert (found["rows"], found["tokens"]) == (3, operator["counts"]["n_tokens_in"])
    assert found["budget"]["document_budget"] == record["document_budget"]["input"]
    assert found["tried"]["tokens"] == operator["counts"]["n_tokens_in"]
    unknown = operator["counts"]["by_class"]["oov"]["sampled"]
    words = sum(sum(operator["counts"]["by_class"][kind].values()) for kind in ("word", "stopword", "oov"))
    assert found["coverage"] == pytest.approx(1 - unknown / words)
    per, spent = found["budget"]["epsilon_per_token"], pq.read_table(tmp_path / "out.jsonl.tokens.parquet")["epsilon"]
    spent = spent.to_numpy()[spent.to_numpy() > 0]
    assert (per["least"], per["most"], per["mean"]) == pytest.approx((spent.min(), spent.max(), spent.mean()))


def test_each_text_counts_as_one(built: Path, tmp_path: Path) -> None:
    """One long text among short ones does not hide what becomes of these: what is foretold is what comes out."""
    short, long = "The government said no to fire services.", "The police said that the government was there. " * 300
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in [short] * 30 + [long]))
    how = {"mechanism": "tem", "strategy": "S1", "epsilon": 40.0, "average_words": 100.0, "seed": 1}
    found = inspect(file, **how)
    documents, tried = found.tried.documents, found.tried
    assert documents is not None and tried.share_changed is not None and documents.documents == 31
    assert tried.share_changed > 0.5 and documents.worst_tenth_unchanged > 0.9  # of all tokens, and of a text
    assert documents.nearly_verbatim >= 20 and documents.median_unchanged > 0.9
    assert found.budget.capped_documents == 30 and found.budget.median_words == 7
    lines = as_text(found)
    assert any(line.startswith("CAUTION: a tenth of the texts keep") for line in lines)
    assert not any("the middle text has" in line for line in lines)  # its length was given
    done = privatize_file(file, tmp_path / "out.jsonl", **how)
    assert done.operator.documents == documents
    assert inspect(file, **HOW | {"epsilon": 0.01}).tried.documents.caution is None


def test_words_are_shown_only_on_request(source: Path) -> None:
    silent = inspect(source, **HOW)
    assert silent.examples is None
    assert "zorblax" not in "\n".join(as_text(silent)).lower() + json.dumps(silent.to_dict()).lower()
    shown = inspect(source, show_examples=True, **HOW)
    assert ("zorblax", 2) in shown.examples["unknown"]
    assert "zorblax (2)" in "\n".join(as_text(shown))
    assert shown.examples["unprotected"][0][0] in {",", "."}
