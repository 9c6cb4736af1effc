"""Statements of a ledger, for people and for other programs: no key in clear, unless the ledger keeps them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lexveil.errors import RequestError
from lexveil.ledger.amounts import NANO, cap_nano
from lexveil.ledger.database import text
from lexveil.ledger.ledger import Ledger, Recovered
from lexveil.runtime.tables import PARQUET, atomic_file

BATCH = 100_000  # rows held at a time

RELEASES = 20  # shown, the newest

NOTHING_LEFT = 1e-6  # of a cap


@dataclass(frozen=True, slots=True)
class Reserved:
    """What was reserved for a release; amounts are epsilon.

    Attributes:
        documents: requested.
        charged: of these, who were paid for; the others were withheld and cost nothing.
        subjects: of all documents requested.
        paying: of these, who paid anything.
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
    """A release in the ledger: when it came to its state, and the facts of it that the chain has."""

    id: str
    state: str
    time: str
    about: dict[str, object] | None
    reserved: Reserved | None


@dataclass(frozen=True, slots=True)
class Balance:
    """What a subject, by its hash, has spent."""

    subject: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Balances and releases of a ledger; amounts are epsilon, exact nano-epsilon are what `export` writes.

    Attributes:
        cap: that of params.yaml, which new releases have; earlier ones keep theirs.
        subjects: how many have spent anything.
        exhausted: how many of them are at the cap or above, or have less than a millionth of it left: shares of a
            budget are rounded down, so that what adds up to the cap hardly ever meets it.
        balance: smallest, median, quantile_90, quantile_99, largest; empty without subjects.
        states: releases by state.
        releases: the newest.
        top: the largest balances.
        head: hash of the newest of the chain's entries.
        recovered: what opening the ledger put right.
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
    """What a subject spent on one release."""

    id: str
    state: str
    time: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class SubjectStatement:
    """What a subject, by its hash, has spent, and on what."""

    subject: str
    epsilon: float
    cap: float | None
    left: float | None
    releases: list[SubjectRelease]


def summary(ledger: Ledger, cap: float | None, top: int = 0, releases: int = RELEASES) -> Summary:
    """Balances and releases of a ledger.

    Args:
        cap: that of params.yaml.
        top: how many of the largest balances to name.
        releases: how many of the newest releases to name.
    """
    with ledger.database.snapshot() as con:
        row = con.execute(
            text("ledger/balances"), {"cap": None if cap is None else int(cap_nano(cap) * (1 - NOTHING_LEFT))}
        ).fetchone()
        largest = con.execute(
            "select lower(hex(subject)), nano from balances order by nano desc, subject limit ?", (top,)
        ).fetchall()
        newest = con.execute(text("ledger/releases"), {"limit": releases}).fetchall()
        states = dict(con.execute("select state, count(*) from releases group by state order by state"))
        entries, head = con.execute("select seq, hash from entries order by seq desc limit 1").fetchone()
    n_subjects, n_exhausted, whole, nano, *spread = row
    names = ("smallest", "median", "quantile_90", "quantile_99", "largest")
    return Summary(
        folder=str(ledger.folder),
        keys=ledger.keys,
        cap=cap,
        subjects=n_subjects,
        exhausted=None if cap is None else n_exhausted,
        spent=_epsilon((whole or 0) * NANO + (nano or 0)),
        balance={name: _epsilon(value) for name, value in zip(names, spread, strict=True) if value is not None},
        states=states,
        releases=[_release(*columns) for columns in newest],
        top=[Balance(subject, _epsilon(nano)) for subject, nano in largest],
        entries=entries,
        head=head,
        recovered=ledger.recovered,
    )


def subject(ledger: Ledger, key: str, cap: float | None) -> SubjectStatement:
    """What one subject has spent, and on what; the key is hashed to look it up, and not given back."""
    digest = ledger.hasher.one(key)
    with ledger.database.snapshot() as con:
        rows = con.execute(text("ledger/subject"), {"subject": digest}).fetchall()
    spent = sum(nano for *_, nano in rows)
    left = None if cap is None else _epsilon(max(0, cap_nano(cap) - spent))
    releases = [SubjectRelease(name, state, time, _epsilon(nano)) for name, state, time, nano in rows]
    return SubjectStatement(digest.hex(), _epsilon(spent), cap, left, releases)


def export(ledger: Ledger, target: Path | str) -> int:
    """Write what each subject has spent to a CSV or Parquet file, "-" for CSV on standard output.

    Columns: subject (hash in hex), spent_nano (whole nano-epsilon), epsilon, n_releases; and key, where the ledger
    keeps keys in clear.

    Returns:
        How many subjects there are.

    Raises:
        RequestError: if the file exists, or has another ending.
    """
    if target == "-":
        return _write_csv(ledger, sys.stdout)
    path = Path(target)
    if path.suffix not in (".csv", ".parquet"):
        raise RequestError(f"{path}: must end in .csv or .parquet; - is CSV on standard output")
    if path.exists():
        raise RequestError(f"{path}: exists already; remove it or choose another output")
    try:
        with atomic_file(path) as partial:
            if path.suffix == ".parquet":
                return _write_parquet(ledger, partial)
            with partial.open("w", encoding="utf-8", newline="") as file:
                return _write_csv(ledger, file)
    except OSError as error:
        raise RequestError(f"{path}: cannot be written ({error.strerror})") from None


def as_text(balances: Summary, n_top: int) -> list[str]:
    """A summary for people."""
    cap = "no cap: spending is recorded, not limited" if balances.cap is None else f"cap {balances.cap:g} per subject"
    lines = [f"ledger {balances.folder}, {balances.keys} keys, {cap}", ""]
    if balances.subjects:
        exhausted = "" if balances.exhausted is None else f", {balances.exhausted:,} of them at the cap or above"
        spread = balances.balance
        lines += [
            f"{balances.subjects:,} subjects have spent {balances.spent:,.6g} epsilon{exhausted}",
            f"one has spent between {spread['smallest']:g} and {spread['largest']:g}: half at most "
            f"{spread['median']:g}, 90% at most {spread['quantile_90']:g}, 99% at most {spread['quantile_99']:g}",
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
        spent = "" if reserved is None else (
            f"  {reserved.epsilon:,.6g} epsilon for {reserved.charged:,} documents of {reserved.paying:,} "
            f"subjects, {reserved.documents:,} requested"
        )  # fmt: skip
        lines.append(f"  {release.id}  {release.state:<9}{spent}")
    hidden = sum(balances.states.values()) - len(balances.releases)
    lines += [f"  and {hidden:,} earlier ones"] if hidden else []
    return [*lines, "", f"{balances.entries:,} entries, head {balances.head}"]


def subject_as_text(spending: SubjectStatement) -> list[str]:
    """One subject for people."""
    left = ""
    if spending.left is not None and spending.cap is not None:
        rest = spending.left if spending.left > spending.cap * NOTHING_LEFT else 0.0
        left = f", {rest:g} of {spending.cap:g} are left"
    known = "" if spending.releases else " (the ledger has nothing of this subject)"
    lines = [f"subject {spending.subject}: {spending.epsilon:g} epsilon spent{left}{known}"]
    return lines + [f"  {release.id}  {release.state:<9}  {release.epsilon:g}" for release in spending.releases]


def recovered_as_text(recovered: Iterable[Recovered]) -> list[str]:
    """What opening the ledger put right, for people."""
    lines = []
    for release in recovered:
        what = {
            "aborted": "was aborted, and what was reserved for it given back",
            "failed": "has failed: noise may have been drawn, so what it spent stays spent",
            "committed": "was completed",
        }.get(release.now, "could not be put right")
        lines.append(f"release {release.release} was {release.was} when its process ended; it {what}")
        lines += [f"  {note}" for note in release.notes]
    return lines


def _release(name: str, state: str, time: str, opened: str, reserved: str | None) -> ReleaseEntry:
    about = json.loads(opened)["about"] if opened else None
    if reserved is None:
        return ReleaseEntry(name, state, time, about, None)
    payload = json.loads(reserved)
    return ReleaseEntry(
        name,
        state,
        time,
        about,
        Reserved(
            budget=_epsilon(payload["budget"]),
            cap=None if payload["cap"] is None else _epsilon(payload["cap"]),
            epsilon=_epsilon(payload["total"]),
            charged=payload["documents"] - payload["withheld"],
            paying=payload["spends"],
            **{name: payload[name] for name in ("documents", "withheld", "subjects", "exhausted")},
        ),
    )


def _epsilon(nano: int) -> float:
    return nano / NANO


def _columns(ledger: Ledger) -> list[str]:
    return ["subject", "spent_nano", "epsilon", "n_releases", *(["key"] if ledger.keys == "plain" else [])]


def _batches(ledger: Ledger) -> Iterator[list[tuple[Any, ...]]]:
    with ledger.database.snapshot() as con:
        cursor = con.execute(text("ledger/export"))
        while rows := cursor.fetchmany(BATCH):
            yield [
                (name, nano, _epsilon(nano), n_releases, *([key] if ledger.keys == "plain" else []))
                for name, nano, n_releases, key in rows
            ]


def _write_csv(ledger: Ledger, file: TextIO) -> int:
    import csv

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_columns(ledger))
    n_rows = 0
    for rows in _batches(ledger):
        writer.writerows(rows)
        n_rows += len(rows)
    return n_rows


def _write_parquet(ledger: Ledger, path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [pa.string(), pa.int64(), pa.float64(), pa.int64(), pa.string()]
    schema = pa.schema(list(zip(_columns(ledger), types, strict=False)))
    n_rows = 0
    with pq.ParquetWriter(path, schema, **PARQUET) as writer:
        for rows in _batches(ledger):
            columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=False)]
            writer.write_table(pa.table(columns, schema=schema))
            n_rows += len(rows)
    return n_rows
