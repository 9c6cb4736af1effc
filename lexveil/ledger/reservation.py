"""What a release costs each subject, and which documents a cap withholds: computed by the database,
whatever the size.

What is asked for waits in a temporary table, which SQLite keeps in memory or in a file without a
name that ends with its process, beside the balances that it is charged to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from lexveil.errors import RequestError
from lexveil.ledger.amounts import MOST, NANO
from lexveil.ledger.balances import CHARGES, edited, seal, write_sealed
from lexveil.ledger.connection import Connection
from lexveil.ledger.database import text
from lexveil.types import Flags

if TYPE_CHECKING:
    import pyarrow as pa

    from lexveil.ledger.spool import Spool


class Exhausted(RequestError):
    """The cap of a subject leaves nothing for a document that was to be released or nothing at
    all.
    """

    @classmethod
    def of(cls, limit: int, documents: tuple[int, int], subjects: tuple[int, int]) -> Self:
        """The error, in words.

        Args:
            limit: nano-epsilon of one subject over all releases.
            documents, subjects: how many are beyond it, and of how many.
        """
        return cls(
            f"the cap of {limit / NANO:g} epsilon per subject leaves nothing for "
            f"{documents[0]:,} of {documents[1]:,} "
            f"documents, of {subjects[0]:,} of {subjects[1]:,} subjects; nothing was "
            "reserved. Leave them out, ask for "
            "a smaller budget, or withhold them (params.yaml: ledger.on_exhausted)"
        )


@dataclass(slots=True)
class Reservation:
    """What was reserved for a release.

    Attributes:
        n_documents: asked for.
        n_withheld: of these, whose subjects had not enough left.
        n_subjects: of all documents asked for.
        n_exhausted: of these, who had documents withheld.
        n_charged: of these, who pay.
        total: nano-epsilon that this release spends, over all subjects.
        largest_balance: nano-epsilon that one of its subjects has spent most, this release
            included.
        cap: nano-epsilon of one subject over all releases; None for no limit.
        digest: of what subjects pay, as the chain has it.
        n_new: of who pays, those who have paid nothing before.
        head: hash of the ledger's chain after this was reserved.
        is_new_cap: whether the ledger had no cap of its own before.
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
        """Whether documents [start, stop), counted from 0 in the order asked for, are withheld."""
        return self.marks[start:stop]

    def withheld_subjects(self) -> Iterator[pa.RecordBatch]:
        """Of ``reserve_in_bulk``: the rows that are withheld, as they came: their column `subject`,
        in order.
        """
        start = 0
        for batch in self.keys or ():
            marks = self.withheld(start, start := start + batch.num_rows)
            if marks.any():
                yield batch.filter(marks)

    def payload(self) -> dict[str, Any]:
        """What the chain keeps of it."""
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
    """The next documents that a release asks for: columns of the table `asked`; keys in clear are
    null if hashed.
    """

    release: Sequence[int]
    document: Sequence[int]
    subject: Sequence[bytes]
    nano: Sequence[int]
    key: Sequence[str | None]


def ask(con: Connection, parts: Iterable[Asked]) -> None:
    """Keep the next documents of a release, in order."""
    con.execute(text("ledger/asked"))
    # of the temporary table alone: no process waits for it, and nothing is synced
    con.execute("begin")
    try:
        con.fill("asked", ", ".join(Asked._fields), parts)
        con.execute("commit")
    except BaseException:
        if con.in_transaction:
            con.execute("rollback")
        raise


def forget(con: Connection, release: int) -> None:
    """Let go of what was asked for."""
    con.execute(text("ledger/asked"))
    con.execute("delete from asked where release = ?", (release,))


def charge(
    con: Connection, release: int, n_documents: int, most: int | None, cap: int | None
) -> Reservation:
    """Charge the subjects of a release, as far as the cap allows: the only way in which a balance
    grows.

    Args:
        most: nano-epsilon that a document costs at most; None takes a subject's documents together
            or not at all.
        cap: nano-epsilon of one subject over all releases; None for no cap.

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
