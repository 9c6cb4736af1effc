"""A column of spans in a released source: the same rules as `lexveil privatize --spans` has."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toy_inbox import SECRET, WORDS, Inbox

from lexveil.errors import RequestError

pytestmark = pytest.mark.slow

TEXT = f"{WORDS} {SECRET}"
START, END = len(WORDS) + 1, len(TEXT)
SPANS = [{"start": START, "end": END, "type": "person"}]


def row(number: str, spans: Any, text: str | None = TEXT) -> dict[str, Any]:
    return {"id": number, "text": text, "found": spans}


def released(inbox: Inbox) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(inbox.releases()[-1] / "documents.parquet").to_pylist()
    return rows


def test_what_a_column_says_is_found_and_the_column_comes_out_empty(inbox: Inbox) -> None:
    inbox.configure(spans_column="found")
    inbox.put("a.jsonl", row("1", SPANS), row("2", json.dumps(SPANS)), row("3", []), row("4", None, text=None))
    kind = pa.list_(pa.struct({"start": pa.int16(), "end": pa.int64(), "type": pa.string()}))
    spans = pa.array([SPANS, None], kind)
    pq.write_table(pa.table({"id": ["5", "6"], "text": [TEXT, TEXT], "found": spans}), inbox.folder / "b.parquet")
    (inbox.folder / "c.tsv").write_text(f"id\ttext\tfound\n7\t{TEXT}\t{json.dumps(SPANS)}\n")
    # What is found costs nothing, and both passes find it: else the charge would not be what is spent.
    estimate = inbox.run(dry_run=True)
    report = inbox.run()
    assert report.released == 7 and report.epsilon == pytest.approx(estimate.epsilon) == pytest.approx(inbox.spent())
    texts = {one["id"]: one["text"] for one in released(inbox)}
    assert {number for number, text in texts.items() if text is not None and text.endswith("[PERSON]")} == set("1257")
    assert texts["4"] is None and SECRET not in "".join(text or "" for text in texts.values())
    assert [one["found"] for one in released(inbox)] == [None] * 7
    assert inbox.record()["counts"]["found"] == {"PERSON": {"placeholder": 4}}
    assert inbox.record()["detection"]["sources"] == ["spans that came with the texts"]
    tokens = pq.read_table(inbox.memory / inbox.releases()[0].name / "documents.parquet.tokens.parquet").to_pylist()
    assert [token["row"] for token in tokens if token["type"] == "PERSON"] == [1, 2, 5, 7]
    current = pq.read_table(inbox.archive / "current.parquet")
    assert current.column("found").null_count == current.num_rows == 7


def test_spans_of_several_texts_name_their_column(inbox: Inbox) -> None:
    inbox.configure(spans_column="found", text_columns=["title", "text"])
    both = [SPANS[0] | {"column": "text"}, {"start": 0, "end": 3, "type": "ROLE", "column": "title", "score": 0.5}]
    inbox.put("a.jsonl", row("1", both) | {"title": "the government"})
    inbox.run()
    (only,) = released(inbox)
    assert only["text"].endswith("[PERSON]") and only["title"].startswith("[ROLE]") and only["found"] is None


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        ([*SPANS, {"start": START, "end": END, "type": f"{SECRET} 1"}], "span 2: its type is no name"),
        (f"[{SECRET}", "not valid JSON"),
        (7, "no list of spans"),
    ],
)
def test_spans_that_are_refused_name_row_and_column_and_no_text(inbox: Inbox, spans: Any, says: str) -> None:
    inbox.configure(spans_column="found")
    inbox.put("a.jsonl", row("1", SPANS), row("2", spans))
    with pytest.raises(RequestError, match=rf"inbox/a\.jsonl, line 2, `found`(, |: ){says}") as caught:
        inbox.run()
    assert SECRET not in str(caught.value)
    assert inbox.releases() == [] and inbox.spent() == 0.0


def test_a_row_without_its_spans_is_refused(inbox: Inbox) -> None:
    inbox.configure(spans_column="found")
    inbox.put("a.jsonl", row("1", SPANS), {"id": "2", "text": TEXT})
    with pytest.raises(RequestError, match=r"a\.jsonl, line 2: it has no `found`; every row must have its spans"):
        inbox.run()
    inbox.put("a.jsonl", row("1", SPANS), {"id": "2", "withdrawn": True})
    assert inbox.run().released == 1


def test_that_no_row_lacks_anything_is_not_shown(inbox: Inbox) -> None:
    """Files that say of a column that it has no null would show it of rows that are withheld or withdrawn."""
    inbox.configure(spans_column="found", columns=["topic"])
    inbox.put("a.jsonl", row("1", SPANS) | {"topic": "fire"})
    inbox.run()
    assert all(field.nullable for field in pq.read_schema(inbox.releases()[0] / "documents.parquet"))


def test_other_spans_are_no_other_version(inbox: Inbox) -> None:
    """As of every column beside the texts: a new version would cost epsilon for the same text."""
    inbox.configure(spans_column="found")
    inbox.put("a.jsonl", row("1", []))
    inbox.run()
    inbox.put("a.jsonl", row("1", SPANS))
    report = inbox.run()
    assert (report.changed, report.duplicate) == (0, 1)
