"""Texts of another language than the model's: said to the operator alone; texts without spaces: refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lexveil
from lexveil.artifacts.model import Model
from lexveil.cli import main
from lexveil.errors import RequestError
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.looking.inspect import inspect_texts
from lexveil.privatization.settings import resolve_settings
from lexveil.request import Request
from tests.german_texts import german_texts

HOW = ("--model", "toy", "--mechanism", "madlib", "--strategy", "S1", "--epsilon", "10", "--seed", "1")
API = {"model": "toy", "mechanism": "madlib", "strategy": "S1", "epsilon": 10.0, "seed": 1}
ENGLISH = ["the government said that the fire services in new south wales were there and that it was all over"] * 3
CHINESE = "这家餐厅的服务非常好，下次还会再来。"


def call(*arguments: str) -> int:
    try:
        return main.main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)


def write(*rows: dict[str, str | None], name: str = "in.jsonl") -> None:
    Path(name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def test_another_language_is_said_to_the_operator_alone(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(*({"text": text} for text in german_texts(4)))
    assert call("privatize", "in.jsonl", "-o", "out.jsonl", *HOW) == 0
    out, err = capsys.readouterr()
    (warning,) = [line for line in err.splitlines() if "looks like" in line]
    assert warning.startswith("the input looks like German (function words de ") and "the model `toy` knows" in warning
    assert "looks like" not in out
    operator = json.loads((outside / "out.jsonl.operator.json").read_text())["language"]
    assert (operator["language"], operator["looks_like"], operator["model"]) == ("en", "de", "toy")
    assert operator["function_words"]["de"] > 0.3 and operator["function_words"]["en"] < 0.1
    assert 0 < operator["known"] < 0.5 and operator["words"] > 100
    # None of it beside the output.
    record = json.loads((outside / "out.jsonl.record.json").read_text())
    assert "language" not in record and "German" not in json.dumps(record)


def test_nothing_is_said_of_the_models_language(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor of a foreign text among others."""
    write(*({"text": text} for text in (*ENGLISH * 5, german_texts(1, sentences=2)[0])))
    assert call("privatize", "in.jsonl", "-o", "out.jsonl", *HOW) == 0
    assert "looks like" not in capsys.readouterr().err
    assert json.loads((outside / "out.jsonl.operator.json").read_text())["language"] is None


def test_the_api_says_it_to_the_operator(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = lexveil.privatize(german_texts(3), average_words=13, **API)
    assert done.operator.language is not None and done.operator.language.looks_like == "de"
    assert "looks like German" in capsys.readouterr().err
    assert lexveil.privatize(ENGLISH, average_words=13, **API).operator.language is None
    model = Model.load(None, "toy")
    options = Request(mechanism="madlib", strategy="S1", epsilon=10.0, average_words=13, seed=1, mode="experiment")
    inspect_texts(german_texts(3), Engine(resolve_settings(options, model), model))
    assert "looks like German" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["privatize", "inspect"])
def test_a_text_without_spaces_is_refused_by_name(
    outside: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Which row and column, and no word of it; nothing is written."""
    write({"text": ENGLISH[0], "more": None}, {"text": None, "more": CHINESE})
    target = ("-o", "out.jsonl") if command == "privatize" else ()
    assert call(command, "in.jsonl", *target, *HOW, "--text-column", "text", "--text-column", "more") == 2
    err = capsys.readouterr().err
    assert "row 2: `more` is in Chinese script without spaces between words" in err
    assert "leave the row out, or put spaces between its words" in err
    assert not set(CHINESE) & set(err) and [file.name for file in outside.iterdir()] == ["in.jsonl"]


def test_the_file_of_a_folder_is_named(outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("many").mkdir()
    write({"text": ENGLISH[0]}, name="many/a.jsonl")
    write({"text": ENGLISH[0]}, {"text": "とてもおいしかったので、また行きたいと思います。"}, name="many/b.jsonl")
    assert call("privatize", "many", "-o", "out", *HOW) == 2
    assert "b.jsonl, row 2: `text` is in Japanese script" in capsys.readouterr().err


def test_single_foreign_words_are_not_refused(outside: Path) -> None:
    texts = [f"{ENGLISH[0]} 東京都新宿区", "東京", "这家 餐厅 的 服务 非常 好", ""]
    assert len(lexveil.privatize(texts, average_words=13, **API).values) == 4
    with pytest.raises(RequestError, match="row 2: `text` is in Chinese script"):
        lexveil.privatize([*texts[:1], CHINESE], average_words=13, **API)
