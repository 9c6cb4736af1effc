"""Errors of the Python API name keyword arguments; those of the command line name options."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lexveil
from lexveil.cli.main import main
from lexveil.keywords import in_keywords
from lexveil.privatization.adapters.inputs import FileOptions

TEXTS = ["The bank of the river was quiet."]
HOW: dict[str, Any] = {"mechanism": "madlib", "strategy": "S1", "epsilon": 2.0}


def test_options_become_keywords_and_commands_stay() -> None:
    said = (
        "give one of --epsilon (base), --document-budget and --type A=b; `lexveil ledger cap N --because TEXT` does it"
    )
    assert in_keywords(said) == (
        "give one of epsilon (base), document_budget and types A=b; `lexveil ledger cap N --because TEXT` does it"
    )
    assert in_keywords("a -- b, x--y, ---z, gut--mit, -v") == "a -- b, x--y, ---z, gut--mit, -v"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": None}, r"^give one of epsilon \(base epsilon per word\), document_budget \(.*\) and recovery"),
        ({"mechanism": "laplace"}, "^mechanism laplace: there is no such mechanism"),
        ({"max_token_epsilon": "none"}, r"^max_token_epsilon none: .*, or add mode experiment$"),
        ({"types": {"PERSON": "drop"}}, "^types: nothing is looked for; add detector, protect or spans$"),
        ({"types": {"PERSON": "melt"}, "spans": [[]]}, "^types PERSON=melt: there is no such action"),
        ({"protect": "absent.txt"}, "^protect"),
        ({"model": "own"}, r"^model own: what a project's run made, .* make one by `lexveil init DIR`"),
    ],
)
def test_privatize_names_arguments(outside: Path, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(lexveil.RequestError, match=says) as caught:
        lexveil.privatize(TEXTS, **{**HOW, **wrong})
    assert "--" not in re.sub("`[^`]*`", "", str(caught.value))


def test_batches_files_and_audits_name_arguments_too(outside: Path) -> None:
    rewrite = lexveil.PrivatizeBatches("text", **HOW | {"strategy": "S9"})
    with pytest.raises(lexveil.RequestError, match=r"^strategy S9: there is no such strategy"):
        rewrite({"text": TEXTS})
    with pytest.raises(lexveil.RequestError, match=r"^samples 10: fewer than 200"):
        lexveil.audit("madlib", 2.0, samples=10)
    (outside / "in.jsonl").write_text('{"body": "quiet"}\n', encoding="utf-8")
    with pytest.raises(lexveil.RequestError, match=r"choose one with text_column \(`lexveil inspect --show-examples`"):
        lexveil.inspect(outside / "in.jsonl", **HOW)
    with pytest.raises(lexveil.RequestError, match="choose one with spans_column "):
        lexveil.inspect(outside / "in.jsonl", text_column="body", spans_column="found", **HOW)


def test_the_command_line_names_options(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (outside / "in.jsonl").write_text('{"text": "quiet"}\n', encoding="utf-8")
    asked = ["privatize", "in.jsonl", "-o", "out.jsonl", "--mechanism", "madlib", "--strategy", "S1"]
    assert main(asked) == 2
    assert "give one of --epsilon (base epsilon per word), --document-budget" in capsys.readouterr().err


def test_every_argument_that_a_message_may_name_is_one() -> None:
    """The names that differ from their options are arguments; a signature is still seen through the decorator."""
    assert {"types", "spans", "column", "subjects"} <= set(inspect.signature(lexveil.privatize).parameters)
    assert {"types", "shares", "form", "spans_column"} <= set(inspect.signature(FileOptions).parameters)
    assert "text_column" in inspect.signature(lexveil.inspect).parameters
    assert isinstance(lexveil.privatize(pa.array([None], pa.string()), seed=1, **HOW).values, pa.Array)
