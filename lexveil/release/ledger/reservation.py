"""Charging of a release to its subjects, by SQL, for releases of any size. Documents are withheld
if they exceed their subject's budget.

The requested documents are in a temporary table next to the balances. SQLite stores this table in
memory, or in a file without a name that ends with its process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.types import Flags
from lexveil.release.ledger.amounts import MOST, NANO
from lexveil.release.ledger.balances import CHARGES, edited, seal, write_sealed
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.database import text

if TYPE_CHECKING:
    import pyarrow as pa

    from lexveil.release.ledger.spool import Spool


class ExhaustedError(RequestError):
    """Error for a release that allows no withheld documents, if a document would exceed the budget
    cap of its subject.
    """

    @classmethod
    def of(cls, limit: int, documents: tuple[int, int], subjects: tuple[int, int]) -> Self:
        """Create the error with its message.

        Args:
            limit: nano-epsilon of one subject over all releases.
            documents, subjects: the number that exceeds the cap, and the total number.
        """
        return cls(
            f"the cap of {limit / NANO:g} epsilon per subject is too small for "
            f"{documents[0]:,} of {documents[1]:,} documents, which belong to "
            f"{subjects[0]:,} of {subjects[1]:,} subjects, so nothing was reserved; remove "
            "these documents, choose a smaller budget, or withhold the documents "
            "(lexveil.toml: ledger.on_exhausted)"
        )


@dataclass(slots=True)
class Reservation:
    """The reservation of epsilon for a release: the documents that are charged or withheld, and the
    total amounts.

    Attributes:
        n_documents: number of requested documents.
        n_withheld: number of withheld documents, which cost more than the rest of their subject's
            budget.
        n_subjects: number of subjects of all requested documents.
        n_exhausted: number of subjects with withheld documents.
        n_charged: number of subjects that are charged.
        total: nano-epsilon that this release spends, over all subjects.
        largest_balance: largest balance of a charged subject in nano-epsilon, with this release.
        cap: largest nano-epsilon of one subject over all releases; None for no limit.
        digest: digest of the charges, for the ledger's log.
        n_new: number of charged subjects that were never charged before.
        marks: (n_documents,) whether each document is withheld.
        head: hash of the ledger's last log entry after the reservation.
        is_new_cap: whether this release set the cap that the ledger itself stores.
        keys: keys of the rows of ``reserve_in_bulk``; None otherwise.
    """

    n_documents: int
    n_withheld: int
    n_subjects: int
    n_exhausted: int
    n_charged: int
    total: int
    largest_balance: int
    cap: int | None
    digest: str
    n_new: int
    marks: Flags = field(repr=False)
    head: str = ""
    is_new_cap: bool = False
    keys: Spool | None = field(default=None, repr=False)

    def withheld(self, start: int, stop: int) -> Flags:
        """Return whether each document of the range [start, stop) is withheld. Documents are
        counted from 0 in the order of the requests.
        """
        return self.marks[start:stop]

    def withheld_subjects(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``reserve_in_bulk`` that are withheld, in their order, with their
        column `subject`.
        """
        start = 0
        for batch in self.keys or ():
            marks = self.withheld(start, start := start + batch.num_rows)
            if marks.any():
                yield batch.filter(marks)

    def payload(self) -> dict[str, Any]:
        """Return the facts of the reservation for the ledger's log."""
        return {
            "cap": self.cap,
            "documents": self.n_documents,
            "withheld": self.n_withheld,
            "subjects": self.n_subjects,
            "exhausted": self.n_exhausted,
            "total": self.total,
            "spends": self.n_charged,
            "spends_sha256": self.digest,
        }


class Asked(NamedTuple):
    """Documents for which a release requests epsilon, as columns of the temporary table `asked`. In
    a ledger of hashed keys, the column of plain keys is null.
    """

    release: Sequence[int]
    document: Sequence[int]
    subject: Sequence[bytes]
    nano: Sequence[int]
    key: Sequence[str | None]


def ask(con: Connection, parts: Iterable[Asked]) -> None:
    """Store the documents for which a release requests epsilon in a temporary table, in order."""
    con.execute(text("ledger/asked"))
    # this transaction changes the temporary table only, so it blocks no process and syncs no file
    con.execute("begin")
    try:
        con.fill("asked", ", ".join(Asked._fields), parts)
        con.execute("commit")
    except BaseException:
        if con.in_transaction:
            con.execute("rollback")
        raise


def forget(con: Connection, release: int) -> None:
    """Delete the stored documents for which a release has requested epsilon."""
    con.execute(text("ledger/asked"))
    con.execute("delete from asked where release = ?", (release,))


def charge(
    con: Connection, release: int, n_documents: int, most: int | None, cap: int | None
) -> Reservation:
    """Charge the subjects of a release as far as the budget cap allows, and return the reservation.
    No other code increases a balance.

    Args:
        release: number of the release.
        n_documents: number of requested documents.
        most: largest cost of a document in nano-epsilon. If None, the documents of a subject are
            charged all together or not at all.
        cap: largest nano-epsilon of one subject over all releases; None for no cap.

    Raises:
        RequestError: if a balance was edited, or a subject would spend more than the ledger can
            hold.
    """
    con.execute(text("ledger/asked"))
    con.analyze("asked")
    con.scratch("charges", CHARGES)
    terms = {
        "release": release,
        "limit": MOST if cap is None else cap,
        **({} if most is None else {"most": most}),
    }
    query = (
        text("ledger/charges")
        if most is not None
        else text("ledger/charges_in_bulk") + con.in_order
    )
    try:
        con.execute(f"insert into charges {query}", terms)
    except sqlite3.OperationalError as error:
        if "integer overflow" not in str(error):
            raise
        raise _too_much() from None
    con.analyze("charges")
    if con.execute("select 1 from spends where release = ? limit 1", (release,)).fetchone():
        raise edited(1)
    n_edited, digest = seal(con, text("ledger/spent"), release)
    if n_edited:
        raise edited(n_edited)
    row = con.execute(text("ledger/reserved")).fetchone()
    n_withheld, n_subjects, n_exhausted, n_charged, n_new, epsilons, nano, largest = row
    if cap is None and n_withheld:
        raise _too_much()
    write_sealed(con)
    con.execute(text("ledger/names"), {"release": release})
    marks = np.zeros(n_documents, dtype=bool)
    if n_withheld:
        for (document,) in con.stream(text("ledger/withheld"), {"release": release}):
            marks[document] = True
    counts = (n_documents, n_withheld, n_subjects, n_exhausted, n_charged)
    return Reservation(*counts, epsilons * NANO + nano, largest, cap, digest, n_new, marks)


def _too_much() -> RequestError:
    return RequestError(
        f"a subject would spend more than {MOST / NANO:g} epsilon, which the ledger cannot hold"
    )
