"""Texts of another language than the model's: said to the operator alone; texts without spaces:
refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import lexveil
from lexveil.errors import RequestError
from tests.german_texts import german_texts

HOW = (
    "--model",
    "toy",
    "--mechanism",
    "madlib",
    "--strategy",
    "S1",
    "--epsilon",
    "10",
    "--seed",
    "1",
)
API = {"model": "toy", "mechanism": "madlib", "strategy": "S1", "epsilon": 10.0, "seed": 1}
ENGLISH = [
    "the government said that the fire services in new south wales were there and that it "
    "was all over"
] * 3
CHINESE = "这家餐厅的服务非常好，下次还会再来。"


def write(*rows: dict[str, str | None]) -> None:
    Path("in.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def test_another_language_is_said_to_the_operator_alone(outside: Path, cli: Any) -> None:
    write(*({"text": text} for text in german_texts(4)))
    out, err = cli("privatize", "in.jsonl", "-o", "out.jsonl", *HOW)
    (warning,) = [line for line in err.splitlines() if "looks like" in line]
    assert (
        warning.startswith("the input looks like German (function words de ")
        and "the model `toy` knows" in warning
    )
    assert "looks like" not in out
    operator = json.loads((outside / "out.jsonl.operator.json").read_text())["language"]
    assert (operator["language"], operator["looks_like"], operator["model"]) == ("en", "de", "toy")
    assert operator["function_words"]["de"] > 0.3 and operator["function_words"]["en"] < 0.1
    assert 0 < operator["known"] < 0.5 and operator["words"] > 100
    # None of it beside the output.
    record = json.loads((outside / "out.jsonl.record.json").read_text())
    assert "language" not in record and "German" not in json.dumps(record)


def test_nothing_is_said_of_the_models_language(outside: Path, cli: Any) -> None:
    """Nor of a foreign text among others."""
    write(*({"text": text} for text in (*ENGLISH * 5, german_texts(1, sentences=2)[0])))
    assert "looks like" not in cli("privatize", "in.jsonl", "-o", "out.jsonl", *HOW).err
    assert json.loads((outside / "out.jsonl.operator.json").read_text())["language"] is None


def test_single_foreign_words_are_not_refused(outside: Path) -> None:
    texts = [f"{ENGLISH[0]} 東京都新宿区", "東京", "这家 餐厅 的 服务 非常 好", ""]
    assert len(lexveil.privatize(texts, average_words=13, **API).values) == 4
    with pytest.raises(RequestError, match="row 2: `text` is in Chinese script"):
        lexveil.privatize([*texts[:1], CHINESE], average_words=13, **API)
