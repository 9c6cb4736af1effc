"""Summaries of a budget ledger, for people and for other programs. They contain subjects' keys in
plain text only if the ledger stores them so.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import PARQUET, atomic_file
from lexveil.release.ledger import chain
from lexveil.release.ledger.amounts import NANO, cap_nano
from lexveil.release.ledger.database import text
from lexveil.release.ledger.ledger import Ledger, Recovered

ROWS_AT_A_TIME = 100_000  # rows in memory at once
COLUMNS = {
    "subject": "string",
    "spent_nano": "int64",
    "epsilon": "double",
    "n_releases": "int64",
    "key": "string",
}
SPREAD = ("smallest", "median", "quantile_90", "quantile_99", "largest")

RELEASES = 20  # default number of releases in a summary, the newest ones

NOTHING_LEFT = 1e-6  # share of a cap that counts as nothing left


@dataclass(frozen=True, slots=True)
class Reserved:
    """Reservation of epsilon for a release, in a ledger summary. Amounts are in epsilon.

    Attributes:
        documents: number of requested documents.
        charged: number of charged documents; the other documents were withheld and cost nothing.
        subjects: number of subjects of all requested documents.
        paying: number of subjects that were charged.
    """

    budget: float
    cap: float | None
    epsilon: float
    documents: int
    charged: int
    withheld: int
    subjects: int
    paying: int
    exhausted: int


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """A release in a ledger summary: its state, the time of this state, and the facts that the
    ledger's log records about it.
    """

    id: str
    state: str
    time: str
    about: dict[str, object] | None
    reserved: Reserved | None


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance (spent epsilon) of one subject, whose name is given as a hash."""

    subject: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of the balances and releases of a ledger. Amounts are in epsilon; `export` writes
    exact nano-epsilon.

    Attributes:
        cap: budget cap of a subject for new releases; earlier releases may have had another cap.
        subjects: number of subjects that have spent any epsilon.
        exhausted: number of subjects at the cap or above, or with less than a millionth of the cap
            left. Shares of a budget are rounded down, so their sum rarely equals the cap exactly.
        balance: smallest, median, quantile_90, quantile_99, largest; empty without subjects.
        states: number of releases by state.
        releases: the newest releases.
        top: the largest balances.
        head: hash of the newest entry of the ledger's log.
        recovered: releases that were recovered when the ledger was opened.
    """

    folder: str
    keys: str
    cap: float | None
    subjects: int
    exhausted: int | None
    spent: float
    balance: dict[str, float]
    states: dict[str, int]
    releases: list[ReleaseEntry]
    top: list[Balance]
    entries: int
    head: str
    recovered: list[Recovered]


@dataclass(frozen=True, slots=True)
class SubjectRelease:
    """Epsilon that a subject spent in one release."""

    id: str
    state: str
    time: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class SubjectStatement:
    """Statement of the spending of one subject, by release. The subject's name is given as a
    hash.
    """

    subject: str
    epsilon: float
    cap: float | None
    left: float | None
    releases: list[SubjectRelease]


def summary(ledger: Ledger, cap: float | None, top: int = 0, releases: int = RELEASES) -> Summary:
    """Summarize the balances and releases of a ledger.

    Args:
        cap: budget cap of a subject for new releases.
        top: number of largest balances to list.
        releases: number of newest releases to list.
    """
    limit = None if cap is None else int(cap_nano(cap) * (1 - NOTHING_LEFT))
    with ledger.database.snapshot() as con:
        row = con.execute(text("ledger/balances"), {"cap": limit}).fetchone()
        by_size = "select subject, nano from balances order by nano desc, subject limit ?"
        largest = con.execute(by_size, (top,)).fetchall()
        newest = con.execute(text("ledger/releases"), {"limit": releases}).fetchall()
        states = dict(
            con.execute("select state, count(*) from releases group by state order by state")
        )
        last = chain.newest(con)
    n_subjects, n_exhausted, whole, nano, *spread = row
    return Summary(
        folder=ledger.name if ledger.database.is_shared else str(ledger.folder),
        keys=ledger.keys,
        cap=cap,
        subjects=n_subjects,
        exhausted=None if cap is None else n_exhausted,
        spent=((whole or 0) * NANO + (nano or 0)) / NANO,
        balance={
            name: value / NANO
            for name, value in zip(SPREAD, spread, strict=True)
            if value is not None
        },
        states=states,
        releases=[
            ReleaseEntry(
                name,
                state,
                time,
                json.loads(opened)["about"] if opened else None,
                _reserved(reserved),
            )
            for name, state, time, opened, reserved in newest
        ],
        top=[Balance(subject.hex(), nano / NANO) for subject, nano in largest],
        entries=last.seq if last else 0,
        head=last.hash if last else chain.START,
        recovered=ledger.recovered,
    )


def _reserved(payload: str | None) -> Reserved | None:
    """Parse the JSON of a log entry `reserved`, or return None if there is no such entry."""
    if payload is None:
        return None
    said = json.loads(payload)
    return Reserved(
        budget=said["budget"] / NANO,
        cap=None if said["cap"] is None else said["cap"] / NANO,
        epsilon=said["total"] / NANO,
        documents=said["documents"],
        charged=said["documents"] - said["withheld"],
        withheld=said["withheld"],
        subjects=said["subjects"],
        paying=said["spends"],
        exhausted=said["exhausted"],
    )


def subject(ledger: Ledger, key: str, cap: float | None) -> SubjectStatement:
    """Return the epsilon that one subject has spent, by release. The key is hashed for the look-up,
    and is not in the result.
    """
    digest = ledger.hasher.one(key)
    with ledger.database.snapshot() as con:
        rows = con.execute(text("ledger/subject"), {"subject": digest}).fetchall()
    spent = sum(nano for *_, nano in rows)
    left = None if cap is None else max(0, cap_nano(cap) - spent) / NANO
    releases = [SubjectRelease(name, state, time, nano / NANO) for name, state, time, nano in rows]
    return SubjectStatement(digest.hex(), spent / NANO, cap, left, releases)


def export(ledger: Ledger, target: Path | str) -> int:
    """Write the spending of each subject to a CSV or Parquet file; "-" writes CSV to standard
    output.

    The columns are subject (hash in hex), spent_nano (whole nano-epsilon), epsilon, n_releases; and
    key, if the ledger stores plain keys.

    Returns:
        Number of subjects.

    Raises:
        RequestError: if the file exists, or has another ending.
    """
    path = Path(target)
    if target != "-" and path.suffix not in (".csv", ".parquet"):
        raise RequestError(
            f"{path}: the name of the output must end in .csv or .parquet; - "
            "is CSV on standard output"
        )
    if target != "-" and path.exists():
        raise RequestError(f"{path}: the output exists already; remove it or choose another output")
    names = [name for name in COLUMNS if name != "key" or ledger.keys == "plain"]
    n_rows = 0
    try:
        with _writer(target, names) as write, ledger.database.snapshot() as con:
            spent = con.stream(text("ledger/export"))
            while rows := list(islice(spent, ROWS_AT_A_TIME)):
                write(
                    [
                        (subject.hex(), nano, nano / NANO, n_releases, key)[: len(names)]
                        for subject, nano, n_releases, key in rows
                    ]
                )
                n_rows += len(rows)
    except OSError as error:
        raise RequestError(f"{path}: the output cannot be written ({error.strerror})") from None
    return n_rows


@contextmanager
def _writer(target: Path | str, names: list[str]) -> Iterator[Callable[[list[Any]], Any]]:
    """Yield a function that writes rows with these columns to the output of ``export``."""
    if target == "-":
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(names)
        yield rows.writerows
        return
    with atomic_file(Path(target)) as partial:
        if Path(target).suffix == ".csv":
            with partial.open("w", encoding="utf-8", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(names)
                yield rows.writerows
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(name, COLUMNS[name]) for name in names])
        with pq.ParquetWriter(partial, schema, **PARQUET) as table:
            yield lambda rows: table.write_table(
                pa.table(list(map(list, zip(*rows, strict=True))), schema=schema)
            )


def as_text(balances: Summary, n_top: int) -> list[str]:
    """Return a ledger summary as lines of text."""
    cap = (
        "no cap: spending is recorded, not limited"
        if balances.cap is None
        else f"cap {balances.cap:g} per subject"
    )
    lines = [f"ledger {balances.folder}, {balances.keys} keys, {cap}", ""]
    if balances.subjects:
        exhausted = (
            ""
            if balances.exhausted is None
            else f", {balances.exhausted:,} of them at the cap or above"
        )
        spread = balances.balance
        lines += [
            f"{balances.subjects:,} subjects have spent {balances.spent:,.6g} epsilon{exhausted}",
            f"each of them between {spread['smallest']:g} and {spread['largest']:g}: half "
            f"of them at most {spread['median']:g}, 90% at most {spread['quantile_90']:g}, "
            f"99% at most {spread['quantile_99']:g}",
        ]
    else:
        lines.append("no subject has spent anything")
    if balances.top:
        lines += ["", f"the {n_top:,} largest balances"]
        lines += [f"  {balance.subject}  {balance.epsilon:g}" for balance in balances.top]
    states = ", ".join(f"{count:,} {state}" for state, count in balances.states.items())
    lines += ["", f"releases: {states or 'none'}"]
    for release in balances.releases:
        reserved = release.reserved
        spent = (
            ""
            if reserved is None
            else (
                f"  {reserved.epsilon:,.6g} epsilon for {reserved.charged:,} documents of "
                f"{reserved.paying:,} "
                f"subjects, {reserved.documents:,} requested"
            )
        )
        lines.append(f"  {release.id}  {release.state:<9}{spent}")
    hidden = sum(balances.states.values()) - len(balances.releases)
    lines += [f"  and {hidden:,} earlier releases"] if hidden else []
    return [*lines, "", f"{balances.entries:,} entries, head {balances.head}"]


def subject_as_text(spending: SubjectStatement) -> list[str]:
    """Return the spending statement of one subject as lines of text."""
    left = ""
    if spending.left is not None and spending.cap is not None:
        rest = spending.left if spending.left > spending.cap * NOTHING_LEFT else 0.0
        left = f", {rest:g} of {spending.cap:g} are left"
    known = "" if spending.releases else " (the ledger has no entry for this subject)"
    lines = [f"subject {spending.subject}: {spending.epsilon:g} epsilon spent{left}{known}"]
    return lines + [
        f"  {release.id}  {release.state:<9}  {release.epsilon:g}" for release in spending.releases
    ]


def recovered_as_text(recovered: Iterable[Recovered]) -> list[str]:
    """Return lines of text about releases that were recovered after their process died."""
    lines = []
    for release in recovered:
        what = {
            "aborted": "was aborted, and its reservation was returned",
            "failed": "has failed; noise may have been drawn, so its epsilon stays spent",
            "committed": "was completed",
        }.get(release.now, "could not be recovered")
        lines.append(
            f"release {release.release} was {release.was} when its process ended; it {what}"
        )
        lines += [f"  {note}" for note in release.notes]
    return lines
