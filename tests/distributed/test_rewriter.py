"""A release on a cluster, whose engine is played here: what is counted, charged, rewritten and
published."""

import pickle
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from random import Random
from typing import Any

import psutil
import pyarrow as pa
import pytest

from lexveil import Ledger, LexveilError, Model, RequestError
from lexveil.base import paths
from lexveil.io.request import Request
from lexveil.release.charge import LedgerCharge
from lexveil.release.distributed.parts import require_all
from lexveil.release.distributed.release import release_table
from lexveil.release.distributed.rewriter import Rewriter, RunTotals, WorkerError, told
from lexveil.release.ledger.statement import subject, summary
from lexveil.release.preconditions import check
from lexveil.release.settings import PER_TEXT
from tests.privatization.sentence_banks import SENTENCES, build_bank

TEXT = "The prime minister said in New South Wales that the fire was under control."
# the last one's rows together cost more than the ledger's cap
NAMES = ["ann", "Ben", " ann", *["many"] * 30]
TABLE = pa.table(
    {"id": range(33), "body": [TEXT] * 33, "who": NAMES, "more": [{"a": [n]} for n in range(33)]}
)


@pytest.fixture
def checked(outside):
    return check(
        Request.of({"document_budget": 60.0, "max_token_epsilon": 60.0}), Model.load(name="toy")
    )


def made(checked, **changed):
    return replace(Rewriter.of(checked, TABLE.schema, ["body"], "who"), **changed)


class PlayedEngine:
    """Batches of 5 rows; every task is tried twice, and the second output is taken. It fails at one
    of its steps."""

    def __init__(self, fails="", again=TABLE, beside=()):
        self.fails = fails
        self.again = again
        self.beside = beside
        self.rows, self.hidden = list[Any](), list[Any]()

    def hide(self, folder, is_left):
        self.folder, self.left = folder, [name for name in (folder, *self.beside) if is_left(name)]

    def reach(self, step):
        if step == self.fails:
            raise OSError("zorblax, which may be a text")

    def count(self, rewriter):
        self.reach("count")
        counted = pa.Table.from_batches([rewriter.count(batch) for batch in TABLE.to_batches(5)])
        added = counted.group_by("subject").aggregate([("nano", "sum"), ("tokens", "sum")])
        yield from added.rename_columns(counted.column_names).to_batches()

    def rewrite(self, rewriter):
        self.reach("rewrite")
        rewriter = pickle.loads(pickle.dumps(rewriter))
        totals = RunTotals()
        for batch in self.again.to_batches(5):
            lost, taken = (
                rewriter.rewrite(batch, RunTotals()),
                rewriter.rewrite(batch, attempt := RunTotals()),
            )
            # each has noise of its own
            assert lost.num_rows == taken.num_rows == 0 or lost != taken
            self.hidden += taken.to_pylist()
            totals.merge(attempt)
        return totals

    def cut(self, totals):
        self.reach("cut")
        require_all(len(self.hidden), totals)
        written = sum(len(row["body"].encode()) for row in self.hidden)
        assert totals.bytes_written == written

    def publish(self, record):
        self.reach("publish")
        self.rows = self.hidden

    def discard(self):
        self.hidden = []


STEPS = ("count", "spend", "rewrite")
KILLS = [
    pytest.param((step, seed), marks=pytest.mark.nightly) for seed in range(20) for step in STEPS
]


@contextmanager
def killing(job, kill, words):
    """Kill a process with these words in its command at a random time during a step of a release;
    an idle one if all are idle.

    ``spend`` is between the passes. An agent of Ray is not a victim: its node ends with it, and the
    driver ends with the node.
    """
    if kill is None:
        yield
        return
    step = kill[0]
    random = Random(kill[1])
    victims = list[psutil.Process]()
    room, longest = (LedgerCharge, 0.0) if step == "spend" else (job, 2.0)
    called = getattr(room, step)

    def fire():
        found = dict[psutil.Process, str]()
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has just ended, or nobody has asked yet how it ended
                command = " ".join(each.cmdline())
                if words in command and "Agent" not in command:
                    found[each] = command
        busy = [each for each, command in found.items() if "IDLE" not in command]
        victims.append(random.choice(busy or [*found]))
        victims[-1].kill()

    def stepping(*arguments):
        threading.Timer(random.random() * longest, fire).start()
        return called(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, step, stepping)
        yield
    assert victims


def charged():
    """Return the spending of each subject, and the states of all transactions."""
    with Ledger.open(
        paths.user_data() / "ledger", anchor=paths.user_data() / "ledger-anchor.json"
    ) as ledger:
        spent = {key: subject(ledger, key, None).epsilon for key in ("ann", "Ben", "many")}
        return spent, [entry.state for entry in reversed(summary(ledger, None).releases)]


def test_a_table_is_charged_once_for_the_output_that_is_published(checked):
    """Two rows of ann are published, and no row of many, because together they cost more than the
    cap.
    """
    engine = PlayedEngine()
    done = release_table(checked, made(checked), engine)
    assert [row["id"] for row in engine.rows] == [0, 1, 2]
    assert all(
        row["body"] not in (TEXT, None) and row["more"] == {"a": [row["id"]]} for row in engine.rows
    )
    spent, states = charged()
    assert (
        states == ["committed"]
        and spent["many"] == 0
        and 0 < spent["ann"] / 2 == spent["Ben"] <= 60
    )
    assert done.record.counts.n_rows == 3 and done.record.spent.mean == pytest.approx(spent["Ben"])
    assert any("all rows of a subject" in condition for condition in done.record.guarantee.because)
    assert (done.operator.ledger.documents_withheld, done.operator.ledger.subjects) == (30, 3)
    later = PlayedEngine(
        beside=[engine.folder, ".lexveil-other", engine.folder.removeprefix(".lexveil-")]
    )
    release_table(checked, made(checked), later)
    assert later.left == [engine.folder] != [later.folder] and engine.left == []


@pytest.mark.parametrize(
    ("fails", "again", "state", "said"),
    [
        (
            "count",
            TABLE,
            "aborted",
            r"^the cluster's job failed \(OSError in test_rewriter\.py, line",
        ),
        ("rewrite", TABLE, "failed", "the epsilon stays spent"),
        ("cut", TABLE, "failed", "the epsilon stays spent"),
        ("publish", TABLE, "failed", "the epsilon stays spent"),
        (
            "",
            pa.concat_tables([TABLE, TABLE[:1]]),
            "failed",
            "was different when it was read again.*stays spent",
        ),
        ("", TABLE.set_column(2, "who", [["x", *NAMES[1:]]]), "failed", "was different"),
    ],
)
def test_a_job_that_fails_publishes_nothing_and_stays_charged_after_the_noise(
    checked, fails, again, state, said
):
    engine = PlayedEngine(fails, again)
    with pytest.raises(LexveilError, match=said) as raised:
        release_table(checked, made(checked), engine)
    assert "zorblax" not in str(raised.value) and not engine.hidden and not engine.rows
    spent, states = charged()
    assert states == [state] and (spent["Ben"] > 0) == (state == "failed")


@pytest.mark.parametrize(
    ("body", "who", "changed", "said"),
    [
        ("มีไฟไหม้ในเมืองหลวง", "x", {}, "a text in Thai script, which has no spaces"),
        (TEXT, None, {}, "a row has no subject, because `who` is null or blank"),
        (TEXT, "\u200b ", {}, "a row has no subject"),
        (
            TEXT,
            "x",
            {"made_with": {}},
            "model toy on .* differs from the driver's model; install the same",
        ),
        (TEXT, "x", {"model_folder": "/nowhere"}, r"\(/nowhere\) differs from the driver's model"),
    ],
)
def test_a_worker_says_what_is_wrong_in_words_that_the_driver_finds(
    checked, body, who, changed, said
):
    packed = pickle.dumps(made(checked, **changed))
    assert len(packed) < 20_000  # names and hashes
    with pytest.raises(WorkerError) as raised:
        pickle.loads(packed).count(
            pa.RecordBatch.from_pylist([{"body": body, "who": who}], TABLE.schema)
        )
    with pytest.raises(RequestError, match=said) as of_driver:
        raise told(RuntimeError(f"Traceback ...\nWorkerError: {raised.value}\n at java"))
    assert "prime" not in str(raised.value) + str(of_driver.value)
    for column, subjects in (("id", None), ("body", "more"), ("absent", None)):
        with pytest.raises(
            RequestError, match=f"`{subjects or column}` (does not contain|is not one)"
        ):
            Rewriter.of(checked, TABLE.schema, [column], subjects)


def test_a_python_that_cannot_be_a_worker():
    for said in (
        "No module named 'lexveil'",
        "[PYTHON_VERSION_MISMATCH] Python in worker",
        "[PACKAGE_NOT_INSTALLED]",
    ):
        assert "install the driver's versions" in str(
            told(RuntimeError(f"Traceback ...\n{said}\n at java"))
        )
    assert told(RuntimeError("No module named 'theirs'")) is None


def sentences(folder, **how):
    request = {"strategy": "S5", "bank": str(build_bank(folder)), "epsilon": 10.0} | how
    return check(Request.of(request), Model.load(name="en"))


def test_a_cluster_writes_sentences_of_a_bank(outside):
    """Each text costs the epsilon of its sentences, and becomes so many sentences of the bank."""
    made_of_bank = Rewriter.of(sentences(outside), TABLE.schema, ["body"], "who")
    sent = pickle.loads(pickle.dumps(made_of_bank))
    batch = TABLE.to_batches(5)[0]
    counted = sent.count(batch).to_pydict()
    assert sum(counted["tokens"]) == 5 * PER_TEXT
    assert sum(counted["nano"]) == 5 * PER_TEXT * 10 * 10**9
    texts = sent.rewrite(batch, RunTotals()).column("body").to_pylist()
    written = [sentence.strip() for text in texts for sentence in text.split(".")[:-1]]
    assert len(written) == 5 * PER_TEXT
    assert {f"{sentence}." for sentence in written} <= {*SENTENCES}


def test_the_budget_of_a_row_has_the_sentences_of_all_its_columns(outside):
    schema = pa.schema([("body", pa.string()), ("title", pa.string())])
    rewriter = Rewriter.of(sentences(outside), schema, ["body", "title"], None)
    assert rewriter.budget.total == 2 * PER_TEXT * 10.0


def test_a_cluster_needs_the_folder_of_a_bank(outside):
    given = sentences(outside)
    wanted = given.engine.settings.sentences
    assert wanted is not None
    given.engine.settings = replace(given.engine.settings, sentences=replace(wanted, bank=None))
    with pytest.raises(RequestError, match="name the folder of the bank"):
        Rewriter.of(given, TABLE.schema, ["body"], "who")


def test_a_cluster_takes_the_bank_that_ships_by_its_name(outside):
    """The bank is installed on every worker, in whatever folder the library has."""
    given = sentences(outside)
    wanted = given.engine.settings.sentences
    assert wanted is not None
    shipped = replace(wanted, bank="shipped")
    given.engine.settings = replace(given.engine.settings, sentences=shipped)
    made = Rewriter.of(given, TABLE.schema, ["body"], "who")
    assert made.settings.sentences == shipped
