"""`lexveil privatize --preview N`: rows to look at, drawn as an experiment, and nothing is left of it."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from asking import preview, privatize_file
from rich.console import Console

from lexveil.cli import main
from lexveil.cli.preview import show_preview
from lexveil.privatization.looking.preview import Preview

HOW: dict[str, Any] = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
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
def source(ready: Path, tmp_path: Path) -> Path:
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def outputs(found: Preview) -> list[dict[str, str]]:
    return [{column: changes.output for column, changes in row.texts.items()} for row in found.rows]


@pytest.mark.parametrize("more", [{}, {"consistent": True, "keep_layout": True, "max_token_epsilon": "none"}])
def test_it_is_the_experiment_of_the_same_seed(source: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    how = {**HOW, **more, "text_column": ("body", "title")}
    found = preview(source, 4, **how)
    privatize_file(source, tmp_path / "out.jsonl", mode="experiment", **how)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()][:4]
    assert outputs(found) == [{column: text for column, text in row.items() if text is not None} for row in rows]
    assert [row.row for row in found.rows] == [1, 2, 3, 4] and found.seed == 20261
    assert found.rows[0].texts["title"].source == "Fire services"
    assert outputs(preview(source, 4, seed=5, **how)) != outputs(found)


def contents(root: Path) -> dict[str, bytes]:
    """Of every file, those of the ledger among them."""
    return {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file() and not file.is_symlink()}


def test_nothing_is_written_charged_or_logged(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = contents(tmp_path)
    assert any("ledger" in name for name in before)
    assert main.main(["privatize", str(source), "--preview", "2", *OPTIONS, "--text-column", "body", "--json"]) == 0
    said = capsys.readouterr()
    assert contents(tmp_path) == before
    found = json.loads(said.out)
    assert CANARY in found["rows"][0]["texts"][0]["source"] and found["mode"] == "experiment"
    assert {"fate": "random", "source": [28, 38]}.items() <= found["rows"][0]["texts"][0]["tokens"][-2].items()
    assert CANARY not in said.err + caplog.text and CANARY not in repr(preview(source, 1, text_column="body", **HOW))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "on a terminal only; with --json"),
        (["-o", "out.jsonl", "--json"], "--preview writes nothing"),
        (["--mode", "release", "--json"], "leave --mode release out"),
        (["--average-words", "data", "--json"], "takes all rows"),
    ],
)
def test_refused(source: Path, capsys: pytest.CaptureFixture[str], more: list[str], why: str) -> None:
    """Standard output of a test is no terminal."""
    command = ["privatize", str(source), "--preview", "2", *OPTIONS, "--text-column", "body", *more]
    assert main.main(command) == 2
    out, err = capsys.readouterr()
    assert out == "" and why in err and err.count("\n") == 1


def test_a_text_cannot_drive_the_terminal(source: Path) -> None:
    stream = io.StringIO()
    console = Console(file=stream, highlight=False, force_terminal=True, width=120, color_system=None)
    show_preview(preview(source, 4, text_column=("body", "title"), **HOW), console)
    plain = stream.getvalue()
    assert f"{{{CANARY}}}" in plain  # in brackets where there are no styles
    assert "\x1b" not in plain and "\u202e" not in plain and "�" in plain
