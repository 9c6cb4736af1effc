"""`lexveil inspect`: what a release would do, without doing it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from lexveil.errors import LexveilError
from lexveil.privatization.file_adapter import privatize_file
from lexveil.privatization.inspection import as_text, inspect

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
    record = privatize_file(source, tmp_path / "out.jsonl", **HOW).to_dict()
    assert found["by_class"] == record["counts"]["by_class"]
    assert (found["rows"], found["tokens"]) == (3, record["counts"]["n_tokens_in"])
    assert found["budget"]["document_budget"] == record["document_budget"]["input"]
    assert found["tried"]["tokens"] == record["counts"]["n_tokens_in"]
    unknown = record["counts"]["by_class"]["oov"]["sampled"]
    words = sum(sum(record["counts"]["by_class"][kind].values()) for kind in ("word", "stopword", "oov"))
    assert found["coverage"] == pytest.approx(1 - unknown / words)


def test_epsilon_per_token_is_that_of_the_ledger(source: Path, tmp_path: Path) -> None:
    per = inspect(source, **HOW).budget.epsilon_per_token
    privatize_file(source, tmp_path / "out.jsonl", **HOW)
    spent = pq.read_table(tmp_path / "out.jsonl.tokens.parquet").to_pandas()["epsilon"]
    spent = spent[spent > 0]
    assert (per.least, per.most, per.mean) == pytest.approx((spent.min(), spent.max(), spent.mean()))


def test_words_are_shown_only_on_request(source: Path) -> None:
    silent = inspect(source, **HOW)
    assert silent.examples is None
    assert "zorblax" not in "\n".join(as_text(silent)).lower() + json.dumps(silent.to_dict()).lower()
    shown = inspect(source, show_examples=True, **HOW)
    assert ("zorblax", 2) in shown.examples["unknown"]
    assert "zorblax (2)" in "\n".join(as_text(shown))
    assert shown.examples["in clear"][0][0] in {",", "."}


def test_what_is_unknown_and_kept_is_said_to_leave_in_clear(source: Path) -> None:
    found = inspect(source, oov="keep", **HOW)
    assert found.by_class.oov.kept > 0 == found.by_class.oov.sampled
    assert found.in_clear_share > inspect(source, oov="sample", **HOW).in_clear_share


def test_a_mechanism_without_a_guarantee_is_said_to_have_none(project: Path, source: Path) -> None:
    params = yaml.safe_load((project / "params.yaml").read_text())
    params["mechanisms"]["vickrey"]["exclude_input"] = True
    (project / "params.yaml").write_text(yaml.safe_dump(params))
    found = inspect(source, **(HOW | {"mechanism": "vickrey"}))
    assert found.budget.no_guarantee
    assert any(line.startswith("CAUTION: no guarantee") for line in as_text(found))


def test_faults_are_those_of_a_release(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(LexveilError, match="no column `text`") as caught:
        inspect(file, **HOW)
    assert caught.value.exit_code == 2
