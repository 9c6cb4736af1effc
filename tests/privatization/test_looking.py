"""`lexveil inspect` and `privatize --preview`: what a release would do, and rows to look at;
nothing is left of it."""

import io
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from asking import preview, privatize_file
from rich.console import Console

from lexveil.api import inspect
from lexveil.cli.preview import show_preview
from lexveil.privatization.looking.inspect import as_text
from lexveil.privatization.looking.preview import Preview
from lexveil.runtime.stage import Progress

HOW: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
TEXTS = [
    "The Government said: yes, Zorblax!",
    "",
    "Fire services in New South Wales  said no, Zorblax.",
]


@pytest.fixture
def source(project: Path, tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    file.write_text(
        "".join(
            json.dumps({"text": text, "who": f"p{i % 2}"}) + "\n" for i, text in enumerate(TEXTS)
        )
    )
    return file


def test_it_foretells_what_a_release_counts(source: Path, tmp_path: Path) -> None:
    shutil.rmtree(".lexveil", ignore_errors=True)
    found = inspect(source, subject_column="who", **HOW).to_dict()
    assert {file.name for file in tmp_path.iterdir()} == {"in.jsonl", "project"}
    assert not Path(".lexveil").exists()
    done = privatize_file(source, tmp_path / "out.jsonl", **HOW)
    record = done.record.to_dict()
    operator = done.operator.to_dict()
    assert found["by_class"] == operator["counts"]["by_class"]
    assert (found["rows"], found["subjects"], found["tokens"]) == (
        3,
        2,
        operator["counts"]["n_tokens_in"],
    )
    assert found["budget"]["document_budget"] == record["document_budget"]["input"]
    assert found["tried"]["tokens"] == operator["counts"]["n_tokens_in"]
    unknown = operator["counts"]["by_class"]["oov"]["sampled"]
    words = sum(
        sum(operator["counts"]["by_class"][kind].values()) for kind in ("word", "stopword", "oov")
    )
    assert found["coverage"] == pytest.approx(1 - unknown / words)
    per = found["budget"]["epsilon_per_token"]
    spent = pq.read_table(tmp_path / "out.jsonl.tokens.parquet")["epsilon"]
    spent = spent.to_numpy()[spent.to_numpy() > 0]
    assert (per["least"], per["most"], per["mean"]) == pytest.approx(
        (spent.min(), spent.max(), spent.mean())
    )


def test_each_text_counts_as_one(built: Path, tmp_path: Path) -> None:
    """One long text among short ones does not hide what becomes of these: what is foretold is what
    comes out."""
    short = "The government said no to fire services."
    long = "The police said that the government was there. " * 300
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in [short] * 30 + [long]))
    how = {"mechanism": "tem", "strategy": "S1", "epsilon": 40.0, "average_words": 100.0, "seed": 1}
    found = inspect(file, **how)
    documents = found.tried.documents
    tried = found.tried
    assert documents is not None and tried.share_changed is not None and documents.documents == 31
    # of all tokens, and of a text
    assert tried.share_changed > 0.5 and documents.worst_tenth_unchanged > 0.9
    assert documents.nearly_verbatim >= 20 and documents.median_unchanged > 0.9
    assert found.budget.capped_documents == 30 and found.budget.median_words == 7
    lines = as_text(found)
    assert str(found) == "\n".join(lines)
    assert any(
        "a tenth of the texts keep" in line and "a stronger protection, or a smaller" in line
        for line in lines
    )
    assert not any("the middle text has" in line for line in lines)  # its length was given
    done = privatize_file(file, tmp_path / "out.jsonl", **how)
    assert done.operator.documents == documents
    assert inspect(file, **HOW | {"epsilon": 0.01}).tried.documents.caution() is None


def test_words_are_shown_only_on_request(source: Path) -> None:
    silent = inspect(source, **HOW)
    assert silent.examples is None
    assert (
        "zorblax" not in "\n".join(as_text(silent)).lower() + json.dumps(silent.to_dict()).lower()
    )
    shown = inspect(source, show_examples=True, **HOW)
    assert ("zorblax", 2) in shown.examples["unknown"]
    assert "zorblax (2)" in "\n".join(as_text(shown))
    assert shown.examples["unprotected"][0][0] in {",", "."}


OPTIONS = ("--mechanism", "madlib", "--strategy", "S3", "--epsilon", "20")
CANARY = "zanzibarix"
ROWS: list[dict[str, str | None]] = [
    {"title": "Fire services", "body": f"The Prime Minister said no, {CANARY}."},
    {"title": None, "body": ""},
    {"title": None, "body": None},
    {"title": "New South Wales", "body": "yes: \x1b[31mred\x1b[0m \u202eyes"},
    {"title": "last", "body": "last"},
]


@pytest.fixture
def titled(ready: Path, tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def outputs(found: Preview) -> list[dict[str, str]]:
    return [{column: changes.output for column, changes in row.texts.items()} for row in found.rows]


@pytest.mark.parametrize(
    "more", [{}, {"consistent": True, "keep_layout": True, "max_token_epsilon": "none"}]
)
def test_it_is_the_experiment_of_the_same_seed(
    titled: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    how = {**HOW, **more, "text_column": ("body", "title")}
    found = preview(titled, 4, **how)
    privatize_file(titled, tmp_path / "out.jsonl", mode="experiment", **how)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()][:4]
    assert outputs(found) == [
        {column: text for column, text in row.items() if text is not None} for row in rows
    ]
    assert [row.row for row in found.rows] == [1, 2, 3, 4] and found.seed == 20261
    assert found.rows[0].texts["title"].source == "Fire services"
    assert outputs(preview(titled, 4, seed=5, **how)) != outputs(found)


def contents(root: Path) -> dict[str, bytes]:
    """Return the contents of every file, including those of the ledger."""
    return {
        str(file): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def test_nothing_is_written_charged_or_logged(
    titled: Path, tmp_path: Path, cli: Any, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    before = contents(tmp_path)
    assert any("ledger" in name for name in before)
    said = cli("privatize", titled, "--preview", "2", *OPTIONS, "--text-column", "body", "--json")
    assert contents(tmp_path) == before
    found = json.loads(said.out)
    assert CANARY in found["rows"][0]["texts"][0]["source"] and found["mode"] == "experiment"
    assert {"fate": "random", "source": [28, 38]}.items() <= found["rows"][0]["texts"][0]["tokens"][
        -2
    ].items()
    assert CANARY not in said.err + caplog.text and CANARY not in repr(
        preview(titled, 1, text_column="body", **HOW)
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "on a terminal only; with --json"),
        (["-o", "out.jsonl", "--json"], "--preview writes nothing"),
        (["--mode", "release", "--json"], "leave --mode release out"),
        (["--average-words", "data", "--json"], "takes all rows"),
    ],
)
def test_refused(titled: Path, cli: Any, more: list[str], why: str) -> None:
    """Standard output of a test is no terminal."""
    command = ("privatize", titled, "--preview", "2", *OPTIONS, "--text-column", "body", *more)
    assert why in cli(*command, code=2, told=r"(using the model.*\n)?").err


def test_a_text_cannot_drive_the_terminal(titled: Path) -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, highlight=False, force_terminal=True, width=120, color_system=None
    )
    show_preview(preview(titled, 4, text_column=("body", "title"), **HOW), console)
    plain = stream.getvalue()
    assert f"{{{CANARY}}}" in plain  # in brackets where there are no styles
    assert "\x1b" not in plain and "\u202e" not in plain and "�" in plain


def test_its_progress_never_passes_the_whole(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only the first rows of a chunk are tried."""
    made: list[Progress] = []

    def progress(label: str, total: int, unit: str, watch: object) -> Progress:
        del watch
        made.append(Progress(label, total, unit, watch=lambda *_: None))
        return made[-1]

    monkeypatch.setattr("lexveil.privatization.release.run.Progress", progress)
    monkeypatch.setattr("lexveil.privatization.looking.inspect.TRIED", 12)
    file = tmp_path / "in.txt"
    file.write_text("The government said no.\n" * 40)
    inspect(file, **HOW)
    (tried,) = [one for one in made if one.label == "try"]
    assert 0 < tried.done <= tried.total == 40
