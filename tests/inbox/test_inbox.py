"""Treatment of documents that are new, repeated, changed, late, withdrawn, or in conflict."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from toy_inbox import SECRET, WORDS, Inbox, files

from lexveil.base.errors import CheckFailedError, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.release.inbox.report import ReleaseReport
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify
from tests.conftest import estimate_quickly, made_of

pytestmark = pytest.mark.slow


@pytest.fixture
def two(inbox):
    """An inbox of two documents."""
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    return inbox


def test_new_documents_are_released_and_paid_for(two):
    report = two.run()
    assert (report.rows, report.new, report.released, report.current) == (2, 2, 2, 2)
    assert two.ids() == ["1", "2"]
    assert report.epsilon == pytest.approx(two.spent())
    assert 0 < report.epsilon <= 2 * 40.0 + 1e-6


def test_all_that_is_not_published_is_for_the_operator_alone(two):
    two.run()
    (release,) = two.releases()
    published = {"documents.parquet", "checks.json", "checks.html"}
    published |= {f"documents.parquet.{ending}" for ending in ("record.json", "statement.txt")}
    assert {file.name for file in release.iterdir()} == published
    private = [two.root / ".lexveil/operator", *(two.memory / release.name).iterdir()]
    assert not [path for path in private if path.stat().st_mode & 0o077]


def test_documents_are_released_once(two):
    two.run()
    before = two.tree(), two.spent()
    again = two.run()
    assert (again.new, again.duplicate, again.released, again.release) == (0, 2, 0, None)
    assert (two.tree(), two.spent()) == before


def test_a_changed_document_is_a_new_version_and_pays_again(inbox):
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    inbox.run()
    spent = inbox.spent()
    text = pq.read_table(inbox.archive / "current.parquet")
    inbox.put("a.jsonl", ("1", WORDS), ("2", f"{WORDS} today"))
    report = inbox.run()
    assert (report.new, report.changed, report.duplicate, report.current) == (0, 1, 1, 2)
    assert inbox.spent() == pytest.approx(spent + 40.0)
    index = pq.read_table(inbox.archive / "index.parquet").to_pylist()
    assert [(row["id"], row["state"]) for row in index] == [
        ("1", "current"),
        ("2", "superseded"),
        ("2", "current"),
    ]
    assert set(index[0]) == {"release", "id", "state", "place"}
    newest = pq.read_table(inbox.releases()[1] / "documents.parquet").to_pylist()
    assert pq.read_table(inbox.archive / "current.parquet").to_pylist() == [
        text.to_pylist()[0],
        *newest,
    ]
    # Back to what it was is another change: what the reader then sees is drawn anew.
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    assert inbox.run().changed == 1


def test_ids_that_collide_are_an_error_that_names_both_rows(inbox):
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    inbox.put("b.jsonl", ("2", "something else"))
    with pytest.raises(
        RequestError, match=r"a\.jsonl, line 2 and inbox/b\.jsonl, line 1 have the same id"
    ) as caught:
        inbox.run()
    assert SECRET not in str(caught.value)
    assert inbox.releases() == [] and inbox.spent() == 0.0


def by_file(inbox):
    """Withdraw document 2 by a list, which has an unknown document, too."""
    (inbox.folder / "withdrawn.txt").write_text("2\n\nunheard-of \n")


def by_column(inbox):
    """Withdraw document 2 by a column."""
    gone = {"id": "2", "withdrawn": True, "text": None}
    inbox.put("a.jsonl", ("1", WORDS), gone, ("3", WORDS))


def withdraw(inbox, how):
    """Release three documents, and withdraw the second one."""
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS), ("3", WORDS))
    inbox.run()
    how(inbox)


@dataclass(frozen=True)
class Withdrawal:
    """A withdrawal of a released document: the inbox before and after a dry run, and after the run
    that takes the document out.
    """

    inbox: Inbox
    spent: float
    dry_run: ReleaseReport
    ids_after_dry_run: list[str]
    report: ReleaseReport

    @property
    def release(self):
        (release,) = self.inbox.releases()
        return release

    @property
    def tokens(self):
        return self.inbox.memory / self.release.name / "documents.parquet.tokens.parquet"


BOTH_WAYS = {"params": [by_file, by_column], "ids": ["file", "column"]}


@pytest.fixture(scope="module", **BOTH_WAYS)
def withdrawn_once(_built, tmp_path_factory, request):
    """A withdrawal whose inbox is for reading alone."""
    found = []

    def take_out():
        Path("dvc.yaml").write_text("stages: {}\n")
        inbox = Inbox(Path.cwd())
        withdraw(inbox, request.param)
        before = (inbox.spent(), inbox.run(dry_run=True), inbox.ids())
        found.append(Withdrawal(inbox, *before, inbox.run()))

    with pytest.MonkeyPatch.context() as patch:
        estimate_quickly(patch, tmp_path_factory.getbasetemp() / "figures")
        made_of(_built, tmp_path_factory, take_out)
    return found[0]


@pytest.fixture
def withdrawn(withdrawn_once, monkeypatch):
    """The withdrawal, in its folder."""
    monkeypatch.chdir(withdrawn_once.inbox.root)
    return withdrawn_once


def test_a_dry_run_takes_nothing_out(withdrawn):
    assert withdrawn.dry_run.taken_out == 1
    assert withdrawn.ids_after_dry_run == ["1", "2", "3"]


def test_withdrawn_documents_are_taken_out_and_stay_paid(withdrawn):
    report = withdrawn.report
    assert (report.withdrawn, report.taken_out, report.current) == (1, 1, 2)
    assert withdrawn.inbox.ids() == ["1", "3"]
    assert withdrawn.inbox.ids(withdrawn.release / "documents.parquet") == ["1", "3"]
    assert withdrawn.inbox.spent() == withdrawn.spent  # it was seen


def test_the_operator_forgets_the_tokens_of_withdrawn_documents(withdrawn):
    assert {*pq.read_table(withdrawn.tokens).column("row").to_pylist()} == {1, 3}
    private = [withdrawn.tokens, withdrawn.inbox.memory / "withdrawn.parquet"]
    assert not [path for path in private if path.stat().st_mode & 0o077]


def test_the_record_is_of_what_is_left_and_the_ledger_of_what_was_released(withdrawn):
    record = withdrawn.inbox.record()
    left = sha256(withdrawn.release / "documents.parquet")
    assert (record["withdrawn"], record["output"]["sha256"]) == (1, left)
    assert verify(".lexveil/ledger", [withdrawn.release / "record.as_released.json"]).holds


@pytest.mark.parametrize(("how", "late"), [(by_file, []), (by_column, ["unheard-of"])])
def test_withdrawn_documents_never_come_back(inbox, how, late):
    """A document stays out if the list no longer names it, if its text has changed, and if it was
    withdrawn before it came."""
    withdraw(inbox, how)
    inbox.run()
    (inbox.folder / "withdrawn.txt").unlink(missing_ok=True)
    named = [("2", "quite another text"), ("unheard-of", WORDS)]
    inbox.put("a.jsonl", ("1", WORDS), ("3", WORDS), *named)
    inbox.run()
    assert inbox.ids() == ["1", "3", *late]


def test_without_a_subject_column_texts_are_the_subjects(inbox):
    """Subjects have the keys that `lexveil privatize` gives to texts. A changed version, which
    would be another subject, is refused.
    """
    inbox.configure(subject_column=None, cap=50.0)
    inbox.put("a.jsonl", ("1", WORDS), ("2", f"  {WORDS.upper()}"))
    assert (inbox.run().released, inbox.spent() <= 50.0) == (1, True)
    (inbox.root / "in.jsonl").write_text(json.dumps({"text": f"{WORDS}\n{SECRET}"}) + "\n")
    how = {"mechanism": "tem", "strategy": "S3", "document_budget": 40.0, "max_token_epsilon": 40.0}
    privatize_file(inbox.root / "in.jsonl", inbox.root / "out.jsonl", **how)
    assert (inbox.root / "out.jsonl").read_text() == ""
    inbox.put("a.jsonl", ("1", f"{WORDS}  "), ("1", WORDS))
    assert inbox.run().duplicate == 2  # written in another way
    inbox.put("a.jsonl", ("1", f"{WORDS} again"))
    spent = inbox.spent()
    with pytest.raises(
        RequestError,
        match=r'1 documents were released before with another text.*`subject_column = "id"`',
    ):
        inbox.run()
    assert (inbox.spent(), len(inbox.releases())) == (spent, 1)


def test_ids_and_subjects_are_known_however_they_are_written(inbox):
    inbox.configure(subject_column="who", cap=50.0)
    inbox.put("a.jsonl", {"id": "7", "who": "c7", "text": f"{WORDS} {SECRET}"})
    assert inbox.run().released == 1
    inbox.put("b.jsonl", {"id": 7.0, "who": " c7", "text": f"{WORDS} {SECRET}"})
    assert inbox.run().duplicate == 2
    inbox.put("b.jsonl", {"id": "8", "who": "c7\u200b", "text": f"{WORDS} {SECRET}"})
    assert (inbox.run().withheld, inbox.spent() <= 50.0) == (1, True)


def test_the_documents_of_exhausted_subjects_are_withheld_and_tried_again(inbox):
    inbox.configure(cap=50.0, subject_column="who")
    owners = {"0": "alice", "1": "alice", "9": "bob"}
    inbox.put("a.jsonl", *({"id": one, "who": who, "text": WORDS} for one, who in owners.items()))
    report = inbox.run()
    assert (report.new, report.released, report.withheld, inbox.ids()) == (3, 2, 1, ["0", "9"])
    assert not list(inbox.releases()[0].glob("*withheld*"))  # it would name subjects
    report = inbox.run()
    assert (report.new, report.released, report.withheld, report.release) == (1, 0, 1, None)
    assert len(inbox.releases()) == 1 and inbox.states() == ["committed", "aborted"]
    inbox.configure(cap=200.0)
    assert inbox.run().released == 1 and inbox.ids() == ["0", "9", "1"]


@pytest.mark.parametrize("asked", [False, True])
def test_without_a_guarantee_nothing_is_released_unless_its_name_says_so(inbox, asked):
    inbox.configure(mechanism="vickrey", without_guarantee=asked)
    params = Path("params.yaml")
    params.write_text(params.read_text().replace("exclude_input: false", "exclude_input: true"))
    inbox.put("a.jsonl", ("1", WORDS), ("2", WORDS))
    if not asked:
        for dry_run in (True, False):
            with pytest.raises(RequestError, match="no guarantee can be given"):
                inbox.run(dry_run=dry_run)
        assert inbox.releases() == [] and inbox.spent() == 0.0
        return
    inbox.run()
    assert (
        inbox.releases()[0].name.endswith("-no-guarantee")
        and inbox.record()["without_guarantee"] is True
    )
    assert inbox.ids() == [] and len(inbox.ids(inbox.archive / "current.no-guarantee.parquet")) == 2
    params.write_text(params.read_text().replace("exclude_input: true", "exclude_input: false"))
    inbox.put("a.jsonl", ("1", f"{WORDS} again"), ("2", WORDS))
    assert inbox.run().release.endswith("-no-guarantee") is False
    assert len(inbox.ids()) == len(inbox.ids(inbox.archive / "current.no-guarantee.parquet")) == 1


@pytest.mark.parametrize(
    ("gate", "says", "state"),
    [
        ({"min_coverage": 1.0}, "the vocabulary has.*index.html$", "aborted"),
        (
            {"max_unprotected": 0.0, "min_coverage": None},
            "unprotected tokens.*index.html$",
            "aborted",
        ),
        (
            {"max_length_ratio": 0.01},
            "become longer than the limit.*index.html; noise had been drawn",
            "failed",
        ),
    ],
)
def test_what_does_not_pass_the_gate_leaves_nothing_and_is_paid_for_once_noise_is_drawn(
    inbox, gate, says, state
):
    """Rules about counts of the source are checked before the noise is drawn."""
    inbox.configure(gate=gate)
    inbox.put("a.jsonl", ("1", f"{WORDS}, then"))
    with pytest.raises(CheckFailedError, match=f"(?s){says}") as caught:
        inbox.run()
    assert SECRET not in str(caught.value)
    assert (
        inbox.releases() == []
        and inbox.states() == [state]
        and (inbox.spent() > 0) == (state == "failed")
    )
    assert not [file for file in files(inbox.memory) if file.name == "ids.parquet"]
    inbox.configure(gate=dict.fromkeys(gate))
    assert inbox.run().released == 1


def test_files_of_a_pattern_by_duckdb(inbox):
    for number, label in ((1, "x"), (2, "y")):
        table = pa.table({"key": [number], "body": [WORDS], "label": [label], "name": [SECRET]})
        pq.write_table(table, inbox.folder / f"{number}.parquet")
    columns = {
        "id_column": "key",
        "subject_column": "key",
        "text_columns": ["body"],
        "columns": ["label"],
    }
    inbox.configure(source="inbox/*.parquet", **columns)
    assert inbox.run().released == 2
    rows = pq.read_table(inbox.archive / "current.parquet").to_pylist()
    assert [(row["key"], row["label"]) for row in rows] == [("1", "x"), ("2", "y")]
    assert set(rows[0]) == {"key", "body", "label"}  # nothing that params.yaml does not name


@pytest.mark.parametrize("attach", ["crm.duckdb", "sqlite:///crm.db"])
def test_a_query_of_a_database(inbox, attach):
    connect = (
        duckdb.connect if attach == "crm.duckdb" else partial(sqlite3.connect, isolation_level=None)
    )
    with closing(connect(attach.removeprefix("sqlite:///"))) as con:
        con.execute("create table tickets (id integer, body text, topic text, withdrawn boolean)")
        rows = [(1, WORDS, "a", None), (2, WORDS, None, None), (3, None, "b", None)]
        con.executemany("insert into tickets values (?, ?, ?, ?)", rows)
    query = "select id, body as text, topic, withdrawn from tickets order by id;"
    inbox.configure(source=None, sql=query, attach=attach, columns=["topic"])
    report = inbox.run()
    assert (report.rows, report.released, inbox.ids()) == (3, 3, ["1", "2", "3"])
    current = pq.read_table(inbox.archive / "current.parquet")
    assert (
        current["topic"].to_pylist() == ["a", None, "b"] and current["text"].to_pylist()[2] is None
    )
    with closing(connect(attach.removeprefix("sqlite:///"))) as con:
        con.execute("update tickets set withdrawn = (id = 2)")
    report = inbox.run()
    assert (report.withdrawn, inbox.ids()) == (1, ["1", "3"])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"source": None}, "inbox.source and inbox.sql are both omitted"),
        ({"id_column": "nr"}, "no column `nr` among its"),
        (
            {"source": None, "sql": "select 1 as id, 2 as text"},
            "`text` has the type INTEGER, not text",
        ),
        ({"source": None, "sql": "select null as id, 'a' as text"}, "row 1 has no id"),
        (
            {"source": None, "sql": "from t", "attach": "oracle:password=tiger"},
            "nor an address; write postgresql://",
        ),
        (
            {"source": None, "sql": "from t", "attach": "postgresql://me:tiger@localhost/crm"},
            "address has a password",
        ),
        ({"source": "postgresql://localhost/crm"}, "inbox.source is the address of a database"),
        ({"document_budget": None}, "set one of inbox.protection"),
        ({"protection": "light"}, "protection and inbox.document_budget are both set"),
        ({"archive": "data/releases"}, "inbox.archive"),
        ({"operator": "releases/mine"}, "inbox.operator lies in a folder that is published"),
    ],
)
def test_what_cannot_be_released_is_one_line(inbox, values, says):
    inbox.put("a.jsonl", ("1", WORDS))
    inbox.configure(**values)
    with pytest.raises(RequestError, match=says) as caught:
        inbox.run()
    assert "\n" not in str(caught.value) and "tiger" not in str(caught.value)
    assert inbox.releases() == []


def test_published_names_are_random_and_of_one_release(inbox):
    inbox.configure(ids="pseudonym", subject_column="who")
    rows = [
        {"id": f"document-{i}", "who": f"person-{i % 2}", "text": f"{WORDS} {i}"} for i in range(4)
    ]
    inbox.put("a.jsonl", *rows)
    inbox.run()
    inbox.put("a.jsonl", *(row | {"text": f"{WORDS} today"} for row in rows))
    inbox.run()
    first, second = (
        pq.read_table(release / "documents.parquet").to_pydict() for release in inbox.releases()
    )
    assert len({*first["id"], *second["id"]}) == 8 and len({*first["who"], *second["who"]}) == 4
    assert first["who"][0] == first["who"][2] != first["who"][1]
    assert inbox.ids() == second["id"]
    for file in files(inbox.archive):
        assert b"document-" not in file.read_bytes() and b"person-" not in file.read_bytes(), file
    with Ledger.open(".lexveil/ledger", None) as ledger:  # and yet two persons paid
        assert ledger.database.rows("select count(*) from balances") == [(2,)]
    (inbox.folder / "withdrawn.txt").write_text("document-3\n")
    assert inbox.run().taken_out == 2
    assert inbox.ids() == second["id"][:3]


@pytest.mark.parametrize(
    "missing", ["*/ids.parquet", "*/documents.parquet.operator.json", "withdrawn.parquet"]
)
def test_without_the_operators_memory_nothing_is_released_again(inbox, missing):
    inbox.put("a.jsonl", ("1", WORDS), ("2", f"{WORDS} today"))
    inbox.run()
    (inbox.folder / "withdrawn.txt").write_text("2\n")
    inbox.run()
    spent = inbox.spent()
    (file,) = inbox.memory.glob(missing)
    file.unlink()
    with pytest.raises(RequestError, match=f"{file.name} is missing"):
        inbox.run()
    assert inbox.spent() == spent and len(inbox.releases()) == 1


SPANNED = f"{WORDS} {SECRET}"
SPAN = {"start": len(WORDS) + 1, "end": len(SPANNED), "type": "person"}


SPANNED_ROWS = [
    {"id": "1", "text": SPANNED, "found": [SPAN]},
    {"id": "2", "text": SPANNED, "found": json.dumps([SPAN])},
    {"id": "3", "text": SPANNED, "found": []},
    {"id": "4", "text": None, "found": None},
]


@pytest.fixture
def spanned(inbox):
    """Documents with spans in every form: of 1, 2 and 5 a name is found."""
    inbox.configure(spans_column="found")
    inbox.put("a.jsonl", *SPANNED_ROWS)
    kind = pa.list_(pa.struct({"start": pa.int16(), "end": pa.int64(), "type": pa.string()}))
    table = {"id": ["5", "6"], "text": [SPANNED] * 2, "found": pa.array([[SPAN], None], kind)}
    pq.write_table(pa.table(table), inbox.folder / "b.parquet")
    return inbox


def test_what_is_found_costs_nothing_in_either_pass(spanned):
    """If one pass counted the found values, the charge would differ from the
    epsilon that is spent."""
    estimate = spanned.run(dry_run=True)
    report = spanned.run()
    assert report.released == 6
    assert [estimate.epsilon, spanned.spent()] == pytest.approx([report.epsilon] * 2)


def test_what_a_column_of_spans_says_is_replaced_and_the_column_comes_out_empty(
    spanned,
):
    spanned.run()
    released = pq.read_table(spanned.releases()[0] / "documents.parquet")
    texts = {row["id"]: row["text"] or "" for row in released.to_pylist()}
    assert {number for number, text in texts.items() if text.endswith("[PERSON]")} == set("125")
    assert texts["4"] == ""
    assert SECRET not in "".join(texts.values())
    assert released.column("found").null_count == 6


def test_no_column_of_a_release_says_that_it_has_no_null(spanned):
    """A column without nulls would say something of rows that are withheld or withdrawn."""
    spanned.run()
    schema = pq.read_schema(spanned.releases()[0] / "documents.parquet")
    assert all(field.nullable for field in schema)


def test_record_and_log_count_what_the_spans_say(spanned):
    spanned.run()
    assert spanned.record()["counts"]["found"] == {"PERSON": {"placeholder": 3}}
    log = spanned.memory / spanned.releases()[0].name / "documents.parquet.tokens.parquet"
    rows = pq.read_table(log, filters=[("type", "=", "PERSON")]).column("row")
    assert rows.to_pylist() == [1, 2, 5]


def test_other_spans_are_no_other_version(spanned):
    """If they were, a text would cost epsilon again for values in another column."""
    spanned.run()
    spanned.put("a.jsonl", SPANNED_ROWS[0] | {"found": []})
    report = spanned.run()
    assert (report.changed, report.duplicate) == (0, 3)


@pytest.mark.parametrize(
    ("spans", "says"),
    [
        (
            {"found": [SPAN, SPAN | {"type": f"{SECRET} 1"}]},
            "line 2, `found`, span 2: the type of the span is not a name",
        ),
        ({"found": f"[{SECRET}"}, "line 2, `found`: not valid JSON"),
        ({}, "line 2: the row has no `found`; every row must have its spans"),
    ],
)
def test_spans_that_are_refused_name_row_and_column_and_no_text(inbox, spans, says):
    inbox.configure(spans_column="found")
    inbox.put(
        "a.jsonl",
        {"id": "1", "text": SPANNED, "found": [SPAN]},
        {"id": "2", "text": SPANNED} | spans,
    )
    with pytest.raises(RequestError, match=rf"inbox/a\.jsonl, {says}") as caught:
        inbox.run()
    assert SECRET not in str(caught.value)
    assert inbox.releases() == [] and inbox.spent() == 0.0


def test_a_level_of_recovery_that_is_out_of_reach_is_refused_before_anything_is_charged(
    inbox,
):
    inbox.put("a.jsonl", ("1", WORDS))
    inbox.configure(document_budget=None, max_token_epsilon=None, recovery=1e-4)
    with pytest.raises(RequestError, match=r"recovery 0\.0001 of all words: a reader who sees no"):
        inbox.run()
    assert inbox.tree() == {} and inbox.spent() == 0
