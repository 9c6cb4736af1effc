"""Running a suite: what is recorded, what is published, what is never told, and that nothing leaves
the machine."""

import json
import os
import re
import sys
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd
import pytest
from asking import no_network

from lexveil.base.errors import CheckFailedError
from lexveil.release.checks.data_docs import DataDocs
from lexveil.release.checks.suites import suite_of
from lexveil.release.checks.validation import validate
from tests.checks.conftest import SECRET

ROOT = Path(__file__).resolve().parents[2]


def suite(high=1.0):
    rules = [
        gxe.ExpectTableRowCountToBeBetween(
            min_value=1,
            description="There is at least one row",
            meta={"fault": "there is no row, at least 1 is needed", "way_out": "Bring some"},
        ),
        gxe.ExpectColumnValuesToBeUnique(
            column="name",
            description="No two rows have the same name",
            meta={"fault": "{subject} occur more than once (name)", "way_out": "Rename"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="n_bad",
            min_value=0,
            max_value=0,
            description="Nothing is bad",
            meta={"fault": "{subject} are bad", "way_out": "Mend"},
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="share",
            min_value=0,
            max_value=high,
            description="Shares are small",
            meta={"fault": "{subject} lie outside in {group}", "way_out": "Lower"},
        ),
    ]
    return suite_of("things", "things", rules, "Look it up")


def frame(**columns):
    good = {
        "name": [SECRET, "b", "c"],
        "group": ["x", "y", "z"],
        "n_bad": [0, 0, 0],
        "share": [0.0, 0.5, 1.0],
    }
    return pd.DataFrame(good | columns)


# Whatever a browser would fetch, or run, on opening a page.
LOADS = re.compile(
    r"<(script|link|img|iframe|object|embed|video|audio|source|base|form)\b"
    r"|\b(src|srcset|data|action|poster|on\w+)=|url\(|@import|@font-face|https?:"
)


def test_the_record_has_the_same_bytes_each_time(docs):
    records = [
        json.dumps(validate("a/b", suite(), frame(), docs).record({"n": 3}), sort_keys=True)
        for _ in range(2)
    ]
    assert records[0] == records[1]
    record = json.loads(records[0])
    assert (record["success"], record["suite"], record["summary"]) == (True, "a/b", {"n": 3})
    none = {"min": 0, "max": 0}
    limits = {
        None: {"min": 1},
        "name": {},
        "n_bad": none,
        "share": {"min": 0, "max": 1},
        "n_missing": none,
    }
    assert {one["column"]: one["limits"] for one in record["expectations"]} == limits
    assert {(one["checked"], one["unexpected"]) for one in record["expectations"]} == {(3, 0)}


@pytest.fixture
def two_suites(docs):
    """Pages of a suite that holds and of one that does not."""
    validate("a/b", suite(), frame(), docs)
    with pytest.raises(CheckFailedError) as caught:
        validate("c", suite(0.25), frame(name=[f"<b>{SECRET}", f"<b>{SECRET}", "c"]), docs)
    assert SECRET not in str(caught.value)
    return docs


PAGES = ["a/b/index.html", "c/index.html", "index.html"]


def test_each_suite_has_a_page_and_the_index_is_one(two_suites):
    pages = two_suites.root.rglob("*.html")
    assert sorted(str(page.relative_to(two_suites.root)) for page in pages) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_pages_load_nothing_and_show_no_value(two_suites, name):
    text = (two_suites.root / name).read_text(encoding="utf-8")
    assert not LOADS.search(text)
    assert not [word for word in (SECRET, "<b>") if word in text]


@pytest.mark.parametrize("name", PAGES)
def test_links_of_pages_lead_to_pages(two_suites, name):
    page = two_suites.root / name
    found = re.findall(r'href="([^"]+)"', page.read_text(encoding="utf-8"))
    assert not [link for link in found if not (page.parent / link).is_file()]


def test_the_page_that_is_given_is_the_one_that_is_written(docs):
    page = validate("a/b", suite(), frame(), docs).page
    assert (docs.root / "a/b/index.html").read_text(encoding="utf-8") == page


def test_pages_say_how_much_holds(two_suites):
    index = (two_suites.root / "index.html").read_text(encoding="utf-8")
    broken = (two_suites.root / "c/index.html").read_text(encoding="utf-8")
    assert re.findall(r"(\d) of 5", index) == ["5", "3"]
    assert broken.count("does not hold") == 2


def test_results_are_counts_and_no_values(two_suites):
    """A result has no ids either: the columns that identify a row stay in the frame."""
    text = (two_suites.root / "c/results.json").read_text(encoding="utf-8")
    assert json.loads(text)["success"] is False
    assert not [word for word in (SECRET, str(ROOT)) if word in text]


def test_what_cannot_be_evaluated_does_not_pass(docs):
    """Great Expectations turns exceptions into results; such a result must stop the stage like any
    other."""
    with pytest.raises(CheckFailedError, match=r"could not be evaluated.*$"):
        validate("a", suite(), frame(n_bad=["x", "y", "z"]), docs)
    assert "Traceback" not in (docs.root / "a/results.json").read_text(encoding="utf-8")


def test_nothing_is_sent_anywhere(docs, monkeypatch):
    no_network(monkeypatch)
    assert validate("a", suite(), frame(), docs).name == "a"
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert "posthog" not in sys.modules


def result(name):
    return {"name": name, "success": True, "run_time": "", "great_expectations": "1", "results": []}


def links(root):
    return re.findall(r'href="([^"]+)"', (root / "index.html").read_text(encoding="utf-8"))


def test_the_index_has_what_is_there(tmp_path):
    """The index omits results that were removed or that a power cut truncated."""
    docs = DataDocs(tmp_path)
    for name, content in (("torn", b'{"name": "to'), ("zeros", bytes(512))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_bytes(content)
    for name in ("plans/S1/1.0", "plans/S2/1.0"):
        docs.put(result(name))
    docs.forget("plans/S1")
    docs.put(result("c"))
    assert links(tmp_path) == ["c/index.html", "plans/S2/1.0/index.html"]
    assert not list(tmp_path.rglob("*.partial"))
