"""A release on a cluster, whose engine is played here: what is counted, charged, rewritten and published."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lexveil import paths
from lexveil.accounting.record import PrivacyRecord
from lexveil.artifacts.model import Model
from lexveil.distributed import rewriter as rewriters
from lexveil.distributed.release import ReleasedTable, release_table
from lexveil.distributed.rewriter import Rewriter, RunTotals, WorkerError, told
from lexveil.errors import LexveilError, RequestError
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.statement import subject, summary
from lexveil.privatization.release.preconditions import Checked, check
from lexveil.request import Request

TEXT = "The prime minister said in New South Wales that the fire was under control."
NAMES = ["ann", "Ben", " ann", *["many"] * 30]  # the last one's rows together cost more than the ledger's cap
TABLE = pa.table({"id": range(33), "body": [TEXT] * 33, "who": NAMES, "more": [{"a": [n]} for n in range(33)]})


@pytest.fixture
def checked(outside: Path) -> Checked:
    return check(Request.of({"document_budget": 60.0, "max_token_epsilon": 60.0}), Model.load(name="toy"))


def made(checked: Checked, table: pa.Table = TABLE, subjects: str | None = "who", **changed: Any) -> Rewriter:
    return replace(Rewriter.of(checked, table.schema, ["body"], subjects), **changed)


class PlayedEngine:
    """Batches of 5 rows; of a task that is tried twice one output is taken. ``fault`` is called at each step."""

    def __init__(self, fault: Callable[[str], object] = lambda _: None, again: pa.Table = TABLE) -> None:
        self.fault, self.again, self.rows, self.records = fault, again, list[Any](), list[PrivacyRecord]()
        self.hidden: list[Any] | None = None

    def count(self, rewriter: Rewriter) -> Iterator[pa.RecordBatch]:
        self.fault("count")
        counted = pa.Table.from_batches([rewriter.count(batch) for batch in TABLE.to_batches(5)])
        added = counted.group_by("subject").aggregate([("nano", "sum"), ("tokens", "sum")])
        yield from added.rename_columns(counted.column_names).to_batches()

    def rewrite(self, rewriter: Rewriter) -> RunTotals:
        self.fault("rewrite")
        rewriter, totals, self.hidden = pickle.loads(pickle.dumps(rewriter)), RunTotals(), []
        for batch in self.again.to_batches(5):
            attempts = [(rewriter.rewrite(batch, own), own) for own in (RunTotals(), RunTotals())]
            assert batch.num_rows == attempts[0][0].num_rows == 0 or attempts[0][0] != attempts[1][0]
            self.hidden += attempts[1][0].to_pylist()
            totals.merge(attempts[1][1])
        return totals

    def publish(self, record: PrivacyRecord) -> None:
        self.fault("publish")
        assert self.hidden is not None
        self.rows, self.records = self.hidden, [record]

    def discard(self) -> None:
        self.hidden = None


def charged() -> tuple[dict[str, float], list[str]]:
    """What each subject has spent, and the states of all transactions."""
    with Ledger.open(paths.user_data() / "ledger", anchor=paths.user_data() / "ledger-anchor.json") as ledger:
        spent = {key: subject(ledger, key, None).epsilon for key in ("ann", "Ben", "many")}
        return spent, [entry.state for entry in reversed(summary(ledger, None).releases)]


def run(checked: Checked, engine: PlayedEngine, **changed: Any) -> ReleasedTable:
    return release_table(checked, made(checked, **changed), engine)


def test_a_table_is_charged_once_for_the_output_that_is_published(checked: Checked) -> None:
    """Every task is tried twice. Of ann two rows come out; of many none, since they cost more than the cap together."""
    engine = PlayedEngine()
    released = run(checked, engine)
    assert [row["id"] for row in engine.rows] == [0, 1, 2] and engine.hidden is None
    assert all(row["body"] not in (TEXT, None) and row["more"] == {"a": [row["id"]]} for row in engine.rows)
    spent, states = charged()
    (each,) = {spent["ann"] / 2, spent["Ben"]}
    assert states == ["committed"] and spent["many"] == 0 and 0 < each <= 60
    record, operator = released.record, released.operator
    assert engine.records == [record] and record.counts.n_rows == 3 and record.spent is not None
    assert record.spent.mean == record.spent.most == pytest.approx(each)
    assert any("all rows of a subject" in condition for condition in record.guarantee.because)
    assert operator.ledger is not None and (operator.ledger.documents_withheld, operator.ledger.subjects) == (30, 3)


def refuse(step: str) -> Callable[[str], object]:
    def fault(reached: str) -> None:
        if reached == step:
            raise OSError("zorblax, which may be a text")

    return fault


@pytest.mark.parametrize(
    ("engine", "state", "said"),
    [
        (PlayedEngine(refuse("count")), "aborted", r"^the cluster's job failed \(OSError in test_rewriter\.py, line"),
        (PlayedEngine(refuse("rewrite")), "failed", "the epsilon stays spent"),
        (PlayedEngine(refuse("publish")), "failed", "the epsilon stays spent"),
        (PlayedEngine(again=TABLE.slice(1)), "failed", "was not the same when it was read again.*stays spent"),
        (PlayedEngine(again=pa.concat_tables([TABLE, TABLE[:1]])), "failed", "was not the same"),
        (PlayedEngine(again=TABLE.set_column(2, "who", [["x", *NAMES[1:]]])), "failed", "was not the same"),
        (PlayedEngine(again=TABLE.set_column(1, "body", [["\0", *[TEXT] * 32]])), "failed", "body` holds a NUL"),
    ],
    ids=["counting", "rewriting", "publishing", "a row less", "a row twice", "another subject", "another text"],
)
def test_a_job_that_fails_publishes_nothing_and_stays_charged_after_the_noise(
    checked: Checked, engine: PlayedEngine, state: str, said: str
) -> None:
    with pytest.raises(LexveilError, match=said) as raised:
        run(checked, engine)
    assert "zorblax" not in str(raised.value) and engine.hidden is None and not engine.records
    spent, states = charged()
    assert states == [state] and (spent["Ben"] > 0) == (state == "failed")
    run(checked, PlayedEngine())  # a second attempt is a second transaction
    again, states = charged()
    assert states == [state, "committed"] and again["Ben"] == spent["Ben"] + again["ann"] / 2 - spent["ann"] / 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"body": ["\0"]}, "a text of `body` holds a NUL"),
        ({"body": ["มีไฟไหม้ในเมืองหลวง"]}, "is in Thai script without spaces"),
        ({"who": [None]}, "a row has no subject: `who` is null or blank"),
        ({"who": ["\u200b "]}, "a row has no subject"),
        ({"model_sha256": "0" * 64}, "model toy on .* is another one than the driver's"),
        ({"made_with": {}}, "is another one than the driver's"),
        ({"model_folder": "/nowhere"}, "model toy cannot be read on .*: /nowhere .*install it on every worker"),
        ({"model": "absent"}, "there is no model absent"),
    ],
)
def test_a_worker_says_what_is_wrong_in_words_that_the_driver_finds(
    checked: Checked, change: dict[str, Any], said: str
) -> None:
    columns = {key: value for key, value in change.items() if key in TABLE.column_names}
    rewriter = made(checked, **{key: value for key, value in change.items() if key not in columns})
    table = pa.table(
        {"body": [TEXT], "who": ["x"]} | columns, schema=pa.schema([("body", "string"), ("who", "string")])
    )
    with pytest.raises(WorkerError) as raised:
        rewriter.count(table.to_batches()[0])
    found = told(RuntimeError(f"Traceback ...\nWorkerError: {raised.value}\n at java"))
    assert isinstance(found, RequestError)
    assert TEXT not in str(raised.value)
    with pytest.raises(RequestError, match=said):
        raise found


def test_only_names_and_hashes_travel_and_other_code_is_refused(checked: Checked, monkeypatch) -> None:
    packed = pickle.dumps(made(checked))
    assert len(packed) < 20_000
    monkeypatch.setattr(rewriters, "build", lambda: "Lexveil 9")
    with pytest.raises(WorkerError, match=r"a worker on .* has Lexveil 9, and the driver Lexveil 0"):
        pickle.loads(packed)


@pytest.mark.parametrize(
    ("asked", "columns", "subjects", "said"),
    [
        ({}, ["nothing"], None, "`nothing` is none of the columns"),
        ({}, ["body", "body"], None, "name each text column once"),
        ({}, ["id"], None, "`id` holds no texts"),
        ({}, ["body"], "more", "subjects: `more` holds no names"),
        ({}, ["body"], "body", "none that says whom"),
        ({"seed": 1}, ["body"], "who", "on a cluster texts are released"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_at_once(
    outside: Path, asked: dict[str, Any], columns: list[str], subjects: str | None, said: str
) -> None:
    checked = check(Request.of(asked), Model.load(name="toy"))
    with pytest.raises(RequestError, match=said):
        Rewriter.of(checked, TABLE.schema, columns, subjects)


def test_a_text_without_a_subject_is_its_own(checked: Checked) -> None:
    counted = made(checked, subjects=None).count(TABLE.to_batches()[0])
    assert counted.num_rows == 1 and counted.column("nano").to_pylist()[0] > 0
