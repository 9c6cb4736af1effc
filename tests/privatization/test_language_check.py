"""Texts of another language than the model's: said to the operator alone; texts without spaces:
refused."""

import json
from pathlib import Path

import pytest

import lexveil
from lexveil.base.errors import RequestError
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.core.accounting.statement import statement
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


def write(*rows):
    Path("in.jsonl").write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )


def test_another_language_is_said_to_the_operator_alone(outside, cli):
    write(*({"text": text} for text in german_texts(4)))
    out, err = cli("privatize", "in.jsonl", "-o", "out.jsonl", *HOW)
    (warning,) = [line for line in err.splitlines() if "looks like" in line]
    assert (
        warning.startswith("CAUTION: the input looks like German (function words de ")
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


def test_nothing_is_said_of_the_models_language(outside, cli):
    """Texts of the model's language cause no warning, and neither does a
    foreign text among others."""
    write(*({"text": text} for text in (*ENGLISH * 5, german_texts(1, sentences=2)[0])))
    assert "looks like" not in cli("privatize", "in.jsonl", "-o", "out.jsonl", *HOW).err
    assert json.loads((outside / "out.jsonl.operator.json").read_text())["language"] is None


def test_single_foreign_words_are_not_refused(outside):
    texts = [f"{ENGLISH[0]} 東京都新宿区", "東京", "这家 餐厅 的 服务 非常 好", ""]
    assert len(lexveil.privatize(texts, average_words=13, **API).values) == 4
    with pytest.raises(RequestError, match="row 2: `text` has a text in Chinese script"):
        lexveil.privatize([*texts[:1], CHINESE], average_words=13, **API)


def test_few_known_words_are_said(outside, cli):
    """The caution about few known words appears for texts that are too short to tell their
    language, or in a language that is not known here.
    """
    write({"text": "Zamówienie dotarło z opóźnieniem, produkt uszkodzony"})
    err = cli("privatize", "in.jsonl", "-o", "out.jsonl", *HOW).err
    (warning,) = [line for line in err.splitlines() if "few words" in line]
    assert warning.startswith("CAUTION: the input has few words that the model `toy` knows (0%)")
    found = json.loads((outside / "out.jsonl.operator.json").read_text())["language"]
    assert (found["looks_like"], found["known"], found["words"]) == (None, 0.0, 6)
    assert "CAUTION: the input has few words" in cli("inspect", "in.jsonl", *HOW).out


def test_texts_without_spaces_come_out_empty_where_that_is_asked_for(outside, cli):
    """The output is that of an input in which they are empty, whatever they say."""
    published = []
    for number, foreign in enumerate((CHINESE, CHINESE * 5, "ประเทศไทยมีอาหารอร่อยมากมาย", "")):
        write({"text": ENGLISH[0]}, {"text": foreign, "id": "a"}, {"text": None}, {"text": "b"})
        out = f"out{number}.jsonl"
        printed = cli("privatize", "in.jsonl", "-o", out, *HOW, "--on-unsupported", "withhold")
        assert ("1 texts are empty in the output" in printed.out) == bool(foreign)
        operator = json.loads((outside / f"{out}.operator.json").read_text())
        assert operator["emptied"] == bool(foreign)
        published.append(
            ((outside / out).read_bytes(), (outside / f"{out}.record.json").read_bytes())
        )
    assert len(set(published)) == 1
    rows = [json.loads(line) for line in published[0][0].splitlines()]
    assert [row["text"] for row in rows][1:3] == ["", None] and rows[1]["id"] == "a"
    record = json.loads(published[0][1])
    assert record["on_unsupported"] == "withhold" and record["counts"]["n_texts"] == 3
    assert "emptied for its script" in record["guarantee"]["in_release"]["not_covered"]


def test_what_was_found_in_an_emptied_text_is_gone(outside):
    spans = [[], [{"start": 2, "end": 4, "type": "PLACE"}]]
    done = lexveil.privatize(
        [ENGLISH[0], CHINESE], spans=spans, average_words=13, on_unsupported="withhold", **API
    )
    assert done.values[1] == "" and done.record.on_unsupported == "withhold"


def test_a_very_long_text_shares_the_budget_of_a_level(outside, cli):
    how = ("--model", "toy", "--mechanism", "madlib", "--strategy", "S1", "--seed", "1")
    write({"text": " ".join(ENGLISH * 300)}, {"text": ENGLISH[0]})
    words = ("--average-words", "100", "--epsilon", "10", "--max-token-epsilon", "10")
    cli("privatize", "in.jsonl", "-o", "out.jsonl", *how, *words)
    found = json.loads((outside / "out.jsonl.record.json").read_text())
    spent = found["spent"]
    assert spent["min_token_epsilon"] < 1 and spent["max_token_epsilon"] == 10
    level = {"level": "light", "content": 0.5, "rare": 0.1, "reader": "none"}
    record = PrivacyRecord.model_validate({**found, "protection": level})
    (said,) = [line for line in statement(record) if "spend epsilon" in line]
    assert f"tokens spend epsilon {spent['min_token_epsilon']:.4g} to 10 (" in said
