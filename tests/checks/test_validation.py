"""Running a suite: what is recorded, what is published, what is never told, and that nothing leaves the machine."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.artifacts.data_docs import DataDocs
from lexveil.checks.offline_pages import index_page, offline_page
from lexveil.checks.rules import at_least_one_row, between, each_once, none_of, suite_of
from lexveil.checks.validation import merge, validate
from lexveil.errors import CheckFailed
from tests.checks.conftest import SECRET

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def suite(high: float = 1.0):
    rules = [
        at_least_one_row("There are rows", "nothing there", "Bring some"),
        each_once(["name"], "Names differ", "{unexpected} of {checked} names repeat", "Rename"),
        none_of(
            "n_bad", "Nothing is bad", "{unexpected} of {checked} rows ({column} {worst:.0f}, limit {limit:g})", "Mend"
        ),
        between("share", "Shares are small", "{worst:g} in {group}, limit {limit:g}", "Lower", low=0, high=high),
    ]
    return suite_of("things", "things", rules, "Look it up")


def frame(**columns: list[object]) -> pd.DataFrame:
    good = {"name": [SECRET, "b", "c"], "group": ["x", "y", "z"], "n_bad": [0, 0, 0], "share": [0.0, 0.5, 1.0]}
    return pd.DataFrame(good | columns)


class Loads(HTMLParser):
    """Collects whatever a browser would fetch, or run, on opening a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}:
            self.found.append(tag)
        for key, value in attrs:
            if key in {"src", "srcset", "data", "action", "poster", "style", "background"} or key.startswith("on"):
                self.found.append(f"{tag}[{key}]")
            if key == "href":
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        if re.search(r"url\(|@import|@font-face", data):
            self.found.append(data.strip()[:40])


def test_the_record_has_the_same_bytes_each_time(docs):
    records = [json.dumps(validate("a/b", suite(), frame(), docs).record({"n": 3}), sort_keys=True) for _ in range(2)]
    assert records[0] == records[1]
    assert json.loads(records[0]) == {
        "success": True,
        "suite": "a/b",
        "summary": {"n": 3},
        "expectations": [
            {"type": kind, "column": column, "limits": limits, "checked": 3, "unexpected": 0}
            for kind, column, limits in [
                ("expect_table_row_count_to_be_between", None, {"min": 1}),
                ("expect_column_values_to_be_unique", "name", {}),
                ("expect_column_values_to_be_between", "n_bad", {"min": 0, "max": 0}),
                ("expect_column_values_to_be_between", "share", {"min": 0, "max": 1}),
                ("expect_column_values_to_be_between", "n_missing", {"min": 0, "max": 0}),
            ]
        ],
    }


def test_pages_load_nothing_and_lead_everywhere(docs):
    validate("a/b", suite(), frame(), docs)
    with pytest.raises(CheckFailed):
        validate("c", suite(0.25), frame(), docs)
    pages = sorted(docs.root.rglob("*.html"))
    assert [str(page.relative_to(docs.root)) for page in pages] == [
        "a/b/index.html", "a/b/suite.html", "c/index.html", "c/suite.html", "index.html"
    ]  # fmt: skip
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loads = Loads(text)
        assert loads.found == []
        assert "http://" not in text
        assert "https://" not in text
        for link in loads.links:
            assert link.startswith("#") or (page.parent / link).is_file(), (page, link)
        assert SECRET not in text
    index = (docs.root / "index.html").read_text(encoding="utf-8")
    assert index.index('href="a/b/index.html"') < index.index('href="c/index.html"')
    assert "5 of 5" in index
    assert "4 of 5" in index


def test_pages_say_what_is_expected_and_what_was_found(docs):
    with pytest.raises(CheckFailed):
        validate("c", suite(0.25), frame(), docs)
    text = (docs.root / "c/index.html").read_text(encoding="utf-8")
    for said in ("There are rows", "Names differ", "Nothing is bad: n_bad = 0", "No things lack a value"):
        assert said in text
    assert "Shares are small: share &gt;= 0 and &lt;= 0.25" in text
    assert "2 unexpected values found" in text
    assert text.count('<i class="fas fa-times') == 2  # the whole, and the one that does not hold
    assert "Shares are small" in (docs.root / "c/suite.html").read_text(encoding="utf-8")


def test_results_hold_counts_and_no_values(docs):
    """Not even ids: whatever names a row stays in the frame."""
    with pytest.raises(CheckFailed) as caught:
        validate("c", suite(), frame(name=[SECRET, SECRET, "c"]), docs)
    text = (docs.root / "c/results.json").read_text(encoding="utf-8")
    assert SECRET not in text + str(caught.value)
    results = json.loads(text)
    assert results["success"] is False
    assert results["results"][1]["result"]["unexpected_count"] == 2
    known = {
        "element_count",
        "missing_count",
        "missing_percent",
        "observed_value",
        "unexpected_count",
        "unexpected_percent",
    }
    assert {key for one in results["results"] for key in one["result"]} <= known
    assert str(ROOT) not in text


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"share": [0.0, 3.0, 2.0]}, "a/b: 3 in y, limit 1. Lower. All results: {docs}/a/b/index.html"),
        ({"share": [0.0, 0.1, -0.5]}, "a/b: -0.5 in z, limit 0. Lower. All results: {docs}/a/b/index.html"),
        ({"n_bad": [0, 7, 2]}, "a/b: 2 of 3 rows (n_bad 7, limit 0). Mend. All results: {docs}/a/b/index.html"),
        (
            {"n_bad": [0, None, 0], "share": [None, None, 0.0]},
            "a/b: 2 of 3 things have no value in n_bad, share (up to 2 each, limit 0). Look it up. "
            "All results: {docs}/a/b/index.html",
        ),
        (
            {"n_bad": [0, 1, 0], "share": [0.0, 2.0, 0.0]},
            "a/b: 1 of 3 rows (n_bad 1, limit 0). Mend. 1 more of this suite's expectations do not hold. "
            "All results: {docs}/a/b/index.html",
        ),
    ],
)
def test_messages_give_number_place_limit_and_way_out(docs, columns, message):
    with pytest.raises(CheckFailed) as caught:
        validate("a/b", suite(), frame(**columns), docs)
    assert str(caught.value) == message.format(docs=docs.root)


def test_a_frame_without_a_judged_column_is_a_mistake(docs):
    with pytest.raises(KeyError, match="share"):
        validate("a", suite(), frame().drop(columns="share"), docs)


def test_what_cannot_be_evaluated_does_not_pass(docs):
    """Great Expectations turns exceptions into results; such a result must stop the stage like any other."""
    with pytest.raises(CheckFailed, match="could not be evaluated") as caught:
        validate("a", suite(), frame(n_bad=["x", "y", "z"]), docs)
    assert "Traceback" not in (docs.root / "a/results.json").read_text(encoding="utf-8")
    assert "\n" not in str(caught.value)


def test_verdicts_of_several_frames_add_up(docs):
    verdicts = [validate(name, suite(), frame(), docs) for name in ("a", "b")]
    merged = merge("both", verdicts)
    assert merged.name == "both"
    assert [one.checked for one in merged.expectations] == [6] * 5
    assert [one.checked for one in verdicts[0].expectations] == [3] * 5


def test_nothing_is_sent_anywhere(docs, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a connection was tried")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert validate("a", suite(), frame(), docs).name == "a"
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert "posthog" not in sys.modules


def test_pages_of_earlier_validations_can_be_forgotten(docs):
    for name in ("plans/S1/1.0", "plans/S2/1.0"):
        validate(name, suite(), frame(), docs)
    docs.forget("plans/S1")
    validate("c", suite(), frame(), docs)
    index = (docs.root / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]+)"', index) == ["c/index.html", "plans/S2/1.0/index.html"]
    assert not list(docs.root.rglob("*.partial"))


def test_a_writer_overtaken_by_another_still_leaves_a_complete_index(tmp_path):
    """Two stages end together: the other one's results appear between reading and writing the index."""
    docs = DataDocs(tmp_path)
    overtaken = []

    def index(results):
        if not overtaken:
            overtaken.append(True)
            (tmp_path / "other").mkdir()
            (tmp_path / "other/results.json").write_text('{"name": "other"}', encoding="utf-8")
        return " ".join(one["name"] for one in results)

    docs.put("mine", {"results.json": '{"name": "mine"}'}, index)
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "mine other"


def test_results_torn_by_a_power_cut_end_no_release(tmp_path):
    docs = DataDocs(tmp_path)
    for name, content in (("torn", b'{"name": "to'), ("zeros", bytes(512))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_bytes(content)
    docs.put("mine", {"results.json": '{"name": "mine"}'}, lambda results: " ".join(one["name"] for one in results))
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "mine"


def test_an_unknown_page_is_rebuilt_from_harmless_parts():
    page = """<html><head><script>a()</script><link href="https://x/y.css"></head><body onload="b()">
      <nav><ul><li>menu</ul></nav><p class="x" style="background:url(https://x/z)">1 &lt; 2<br><img src="https://x/i">
      <a href="https://x">out</a><a href="#there">there</a></p><iframe src="https://x"></iframe><b>end</b></body></html>"""
    text = offline_page(page, "a/b", "today & now")
    assert Loads(text).found == []
    assert Loads(text).links == ["index.html", "suite.html", "results.json", "../../index.html", "#there"]
    assert "https" not in text
    assert "1 &lt; 2<br>" in text
    assert "<b>end</b>" in text
    assert "today &amp; now" in text
    assert "menu" not in text
    assert "<b>" not in index_page([])


def test_a_stage_that_fails_says_so_in_one_line_and_leaves_no_record(tmp_path):
    """The whole of it, as DVC runs it: exit code, streams and files; then mended."""
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    corpus = tmp_path / "artifacts/corpus"
    corpus.mkdir(parents=True)
    pq.write_table(pa.table({"doc_id": ["a"], "text": [SECRET]}), corpus / "sample.parquet")
    record = tmp_path / "artifacts/checks/corpus.json"
    record.parent.mkdir()
    record.write_text("from an earlier run", encoding="utf-8")

    def check(word: str) -> subprocess.CompletedProcess[str]:
        number, ids = pa.array([0], pa.int32()), pa.array([[0]], pa.list_(pa.int32()))
        pq.write_table(pa.table({"doc_id": ["a"], "sentence_id": number, "ids": ids}), corpus / "tokens.parquet")
        pq.write_table(pa.table({"word_id": number, "word": [word]}), corpus / "words.parquet")
        command = [sys.executable, "-m", "tasks.check_corpus"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path / "home")}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    failed = check(f"{SECRET}_")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith(
        "CheckFailed: corpus: 1 of 1 documents have sentences with a token that is empty or"
    )
    assert "artifacts/data_docs/corpus/index.html" in failed.stderr
    assert SECRET not in failed.stderr
    assert not record.exists()
    assert (tmp_path / "artifacts/data_docs/corpus/index.html").is_file()

    passed = check(SECRET)
    assert (passed.returncode, passed.stderr) == (0, "")
    assert str(tmp_path) not in record.read_text(encoding="utf-8")
    assert not (tmp_path / "home").exists()  # no settings, no identity, no cache of its own
