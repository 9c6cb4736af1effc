"""Whole releases of `lexveil privatize` and `lexveil release`, killed at any moment; nightly."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lexveil.ledger.ledger import Ledger
from lexveil.ledger.verification import verify
from tests.forks import Forks, forks_of
from tests.inbox.toy_inbox import Inbox

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

TEXT = "The government said that fire services in New South Wales were there, and so was Zorblax."
BUDGET = 40.0  # of a document
PRIVATIZE = f"""
import sys
from lexveil.privatization.adapters.files import privatize_file
from lexveil.request import FileRequest
privatize_file(f"sources/{{sys.argv[1]}}.jsonl", f"outputs/{{sys.argv[1]}}.jsonl", FileRequest(
    mechanism="madlib", strategy="S3", document_budget={BUDGET}, max_token_epsilon={BUDGET}, subject_column="who",
    workers=1))
"""
RELEASE = "from lexveil.inbox.run import release_inbox\nrelease_inbox()\n"
FORGETS = """
from lexveil.ledger import reservation
text = reservation.text
reservation.text = lambda name: "select 1" if name == "ledger/raise" else text(name)
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    modules = ("lexveil.inbox.run", "lexveil.checks.release_suite", "lexveil.privatization.adapters.files")
    with forks_of(*modules) as made:
        yield made


@pytest.fixture
def inbox(project: Path) -> Inbox:
    """An inbox, sources and outputs, and room for six documents of a subject."""
    for name in ("outputs", "sources"):
        (project / name).mkdir()
    inbox = Inbox(project)
    inbox.configure(cap=6 * BUDGET, subject_column="who", columns=["also"])
    return inbox


def outputs() -> dict[Path, Counter[str]]:
    """The record of each output that has its name, and how many documents of each subject it has."""
    counts = {}
    for path in Path("outputs").glob("[!.]*.jsonl"):
        rows = [json.loads(line)["also"] for line in path.read_text(encoding="utf-8").splitlines()]
        counts[path.with_name(f"{path.name}.record.json")] = Counter(rows)
    for path in Path("releases").glob("*/documents.parquet"):
        subjects = pq.read_table(path, columns=["also"]).column("also").to_pylist()
        counts[path.with_name(f"{path.name}.record.json")] = Counter(subjects)
    return counts


def inspected() -> None:
    """Each output has its record and pays for each document; balances are the sum of that; nothing is left over."""
    with Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json") as ledger:
        assert ledger.refusal is None and not [one for one in ledger.recovered if one.notes]
        states = dict(ledger.database.rows("select id, state from releases"))
        sums: Counter[bytes] = Counter()
        spends: dict[str, dict[bytes, int]] = {}
        for release, subject, nano in ledger.database.rows(
            "select releases.id, subject, nano from spends inner join releases on releases.number = spends.release"
        ):
            spends.setdefault(release, {})[subject] = nano
            sums[subject] += nano
        assert dict(ledger.database.rows("select subject, nano from balances")) == sums
        assert max(sums.values(), default=0) <= 6 * BUDGET * 1e9
        published = set()
        for record, subjects in outputs().items():
            release = json.loads(record.read_text(encoding="utf-8"))["release"]["id"]
            paid = spends.get(release, {})  # nothing for an output of no row
            cost = sum(paid.values()) // max(1, subjects.total())
            assert paid == {ledger.hasher.one(key): n * cost for key, n in subjects.items()}
            assert states[release] == "committed"
            published.add(release)
    assert all(states[release] in ("failed", "aborted") for release in set(spends) - published)
    assert not [*Path("outputs").glob(".*"), *Path("releases").glob("*/.partial-*")]
    assert verify(".lexveil/ledger", sorted(outputs())).problems == []


def kill(forks: Forks, number: int, rng: random.Random, seconds: dict[str, float], before: str = "") -> None:
    """Begin a release of a few documents and kill it; every tenth one is spared, and says how long they take."""
    code, subjects = rng.choice((PRIVATIZE, RELEASE)), [f"{number // 8}-{letter}" for letter in "abc"]
    rows = [
        {"id": f"{number}-{n}", "who": who, "also": who, "text": TEXT}
        for n, who in enumerate(rng.choices(subjects, k=3))
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    Path("sources" if code == PRIVATIZE else "inbox", f"{number}.jsonl").write_text(lines, encoding="utf-8")
    started = time.monotonic()
    fork = forks.start(before + code, number)
    if code in seconds and number % 10:
        time.sleep(rng.uniform(0, seconds[code]))
        os.kill(fork.pid, signal.SIGKILL)
    done = fork.wait()
    assert done.returncode in (0, -9) or "is withheld" in done.stderr or "RequestError" in done.stderr, done.stderr
    if done.returncode == 0:
        seconds[code] = time.monotonic() - started


@pytest.mark.usefixtures("inbox")
def test_whole_releases_killed_at_any_moment(forks: Forks) -> None:
    rng, seconds = random.Random(7), dict[str, float]()
    for number in range(500):
        kill(forks, number, rng, seconds)
        inspected()


@pytest.mark.usefixtures("inbox")
def test_the_harness_can_fail(forks: Forks) -> None:
    """Where what subjects have spent is not remembered, it says so."""
    kill(forks, 0, random.Random(3), {}, before=FORGETS)
    with pytest.raises(AssertionError):
        inspected()
