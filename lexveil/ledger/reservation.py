"""What a release costs each subject, and which documents a cap withholds: computed part by part, in bounded memory."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np

from lexveil.errors import RequestError
from lexveil.ledger import balances
from lexveil.ledger.amounts import MOST, NANO, Ints, Keys, costs, distinct, spend_bytes, withhold
from lexveil.ledger.spool import Chunk, chunks
from lexveil.ledger.subjects import Hasher, as_bytes
from lexveil.types import Flags


class Exhausted(RequestError):
    """The cap of a subject leaves nothing for a document that was to be released or nothing at all."""

    @classmethod
    def of(cls, limit: int, documents: tuple[int, int], subjects: tuple[int, int]) -> Self:
        """The error, in words.

        Args:
            limit: nano-epsilon of one subject over all releases.
            documents, subjects: how many are beyond it, and of how many.
        """
        return cls(
            f"the cap of {limit / NANO:g} epsilon per subject leaves nothing for {documents[0]:,} of {documents[1]:,} "
            f"documents, of {subjects[0]:,} of {subjects[1]:,} subjects; nothing was reserved. Leave them out, ask for "
            "a smaller budget, or withhold them (params.yaml: ledger.on_exhausted)"
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was reserved for a release.

    Attributes:
        n_documents: asked for.
        n_withheld: of these, whose subjects had not enough left.
        n_subjects: of all documents asked for.
        n_exhausted: of these, who had documents withheld.
        n_charged: of these, who pay.
        total: nano-epsilon that this release spends, over all subjects.
        largest_balance: nano-epsilon that one of its subjects has spent most, this release included.
        head: hash of the ledger's chain after this was reserved.
        cap: nano-epsilon of one subject over all releases; None for no limit.
        is_new_cap: whether the ledger had no cap of its own before.
    """

    n_documents: int
    n_withheld: int
    n_subjects: int
    n_exhausted: int
    n_charged: int
    total: int
    largest_balance: int
    head: str
    cap: int | None
    is_new_cap: bool
    _marks: Flags = field(repr=False)

    def withheld(self, start: int, stop: int) -> Flags:
        """Whether documents [start, stop), counted from 0 in the order asked for, are withheld."""
        return np.array(self._marks[start:stop], dtype=bool)


@dataclass(slots=True)
class Charge:
    """Charges the subjects of a release, in one transaction of the database, and adds up what is reserved.

    Attributes:
        release: its number.
        budget: document budget B.
        limit: nano-epsilon of one subject over all releases; None for no cap.
        marks: of each document, whether it is withheld; filled in.
        hasher: under the ledger's salt.
        digest: of what subjects pay, as the chain has it.
        n_rows: subjects that pay.
        largest: nano-epsilon that one of the subjects has spent most, this release included.
    """

    release: int
    budget: float
    limit: int | None
    marks: Flags
    hasher: Hasher
    digest: Any = field(default_factory=hashlib.sha256)
    n_rows: int = 0
    n_withheld: int = 0
    n_subjects: int = 0
    n_exhausted: int = 0
    total: int = 0
    largest: int = 0

    def add(self, con: sqlite3.Connection, part: Path | Chunk) -> None:
        """Charge the subjects of one part, all of whose documents are in it.

        Raises:
            RequestError: if a subject would spend more than the ledger can hold.
        """
        subjects = distinct(np.concatenate([distinct(chunk["key"])[0] for chunk in chunks(part)]))[0]
        hashes = as_bytes(subjects)
        before = balances.read(con, subjects, hashes, self.hasher)
        room = (MOST if self.limit is None else self.limit) - before
        asked, paid = np.zeros(len(subjects), dtype=np.int64), np.zeros(len(subjects), dtype=np.int64)
        exhausted = np.zeros(len(subjects), dtype=bool)
        for chunk in chunks(part):
            subject = _positions(subjects, chunk["key"])
            withheld, pay, asked = withhold(subject, costs(chunk["epsilon"], self.budget), asked, room)
            paid += pay
            exhausted[subject[withheld]] = True
            self.marks[chunk["document"]] = withheld
            self.n_withheld += int(withheld.sum())
        if self.limit is None and self.n_withheld:
            raise RequestError(f"a subject would spend more than {MOST / NANO:g} epsilon, which the ledger cannot hold")
        pays = paid > 0
        amounts = paid[pays]
        payers = list(compress(hashes, pays.tolist()))
        balances.charge(con, self.release, payers, amounts, (before + paid)[pays], self.hasher)
        self.digest.update(spend_bytes(subjects[pays], amounts))
        self.n_rows += len(amounts)
        self.n_subjects += len(subjects)
        self.n_exhausted += int(exhausted.sum())
        self.total += sum(amounts.tolist())
        self.largest = max(self.largest, int((before + paid).max(initial=0)))

    def payload(self) -> dict[str, Any]:
        """What the chain keeps of it."""
        return {
            "withheld": self.n_withheld,
            "subjects": self.n_subjects,
            "exhausted": self.n_exhausted,
            "total": self.total,
            "spends": self.n_rows,
            "spends_sha256": self.digest.hexdigest(),
        }

    def reservation(self, n_documents: int, head: str, is_new_cap: bool) -> Reservation:
        """What was reserved, once all parts are charged."""
        subjects = (self.n_subjects, self.n_exhausted, self.n_rows)
        counts = (n_documents, self.n_withheld, *subjects, self.total, self.largest)
        return Reservation(*counts, head, self.limit, is_new_cap, self.marks)


def _positions(subjects: Keys, keys: Keys) -> Ints:
    """Which of the distinct, ordered ``subjects`` each of ``keys`` is, shape (n,)."""
    return distinct(np.concatenate([subjects, keys]))[1][len(subjects) :]
