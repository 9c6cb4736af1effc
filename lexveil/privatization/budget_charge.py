"""Charge an output to the budget ledger, if anything is released."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from lexveil.accounting.record import LedgerEntry
from lexveil.config import ReleaseParams
from lexveil.errors import RequestError
from lexveil.formats.chunks import Chunk
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.reservation import Reservation
from lexveil.ledger.statement import recovered_as_text
from lexveil.ledger.transaction import Transaction
from lexveil.privatization.model import Model
from lexveil.privatization.outputs import Outputs
from lexveil.runtime.hashes import version
from lexveil.types import Flags


class Charge(Protocol):
    """The steps of charging an output, in this order; leaving without ``publish`` or ``commit`` aborts the charge."""

    def request(self, chunk: Chunk, shares: npt.NDArray[np.float64]) -> None:
        """Request the rows of a chunk, each at a share of the document budget."""

    def reserve(self, budget: float) -> None:
        """Reserve the cost of all rows whose subjects have budget left."""

    def withheld(self, start: int, stop: int) -> Flags:
        """Which rows, counted from 0 in the order requested, are withheld."""

    def entry(self) -> LedgerEntry | None:
        """What the record says of it."""

    def publish(self, outputs: Outputs) -> None:
        """Charge the ledger and let the outputs appear."""

    def commit(self) -> None:
        """Charge the ledger before the first byte goes to a stream, which cannot be withdrawn."""


class NoCharge:
    """An experiment or a copy: nothing is released, so nothing is charged."""

    def request(self, chunk: Chunk, shares: npt.NDArray[np.float64]) -> None:
        """Nothing is requested."""

    def reserve(self, budget: float) -> None:
        """Nothing is reserved."""

    def withheld(self, start: int, stop: int) -> Flags:
        """No row is."""
        return np.zeros(stop - start, dtype=bool)

    def entry(self) -> None:
        """The record says nothing."""
        return

    def publish(self, outputs: Outputs) -> None:
        """Let the outputs appear."""
        outputs.publish()

    def commit(self) -> None:
        """Nothing is charged."""


@dataclass(slots=True)
class LedgerCharge:
    """A release, charged to the ledger."""

    release: Transaction
    params: ReleaseParams
    outputs: Outputs
    finals: Sequence[Path]
    reserved: Reservation | None = None

    def request(self, chunk: Chunk, shares: npt.NDArray[np.float64]) -> None:
        """Request the rows of a chunk."""
        self.release.request(subjects_of(chunk), shares)

    def reserve(self, budget: float) -> None:
        """Reserve what the rows cost. Without any word in the input the budget is 0, and so are all costs."""
        partials = [partial for partial, _ in self.outputs.all_names(self.finals)] if self.outputs.target else []
        self.reserved = self.release.reserve(
            budget or 1.0, self.params.cap, self.params.on_exhausted, [Path(partial).absolute() for partial in partials]
        )

    def withheld(self, start: int, stop: int) -> Flags:
        """Which rows are withheld."""
        assert self.reserved is not None
        return self.reserved.withheld(start, stop)

    def entry(self) -> LedgerEntry:
        """The transaction by its id, what it charged, and the ledger's head, which anchors the chain."""
        reserved = self.reserved
        assert reserved is not None
        return LedgerEntry(
            id=self.release.id,
            head=reserved.head,
            cap=self.params.cap,
            documents=reserved.n_documents,
            withheld=reserved.n_withheld,
            subjects=reserved.n_subjects,
            exhausted=reserved.n_exhausted,
            epsilon=reserved.total / 1e9,
            largest_balance=reserved.largest_balance / 1e9,
        )

    def publish(self, outputs: Outputs) -> None:
        """Let the outputs appear. After ``written``, recovery rolls the transaction forward."""
        files = [(partial.absolute(), final.absolute(), outputs.sha256(final)) for partial, final in outputs.settle()]
        self.release.written(files)
        # The ledger owns them now: if a rename fails, recovery needs the hidden files.
        outputs.forget()
        self.release.publish()

    def commit(self) -> None:
        """Charge the ledger now."""
        self.release.commit()


def terms_of(model: Model, on_exhausted: Literal["withhold", "refuse"] | None) -> ReleaseParams:
    """The terms of params.yaml; what a request says of exhausted subjects takes precedence."""
    terms = model.params.release
    return terms.model_copy(
        update={"on_exhausted": on_exhausted or terms.on_exhausted, "ledger": str(model.path(terms.ledger))}
    )


@contextmanager
def paying(
    params: ReleaseParams,
    mode: str,
    has_subjects: bool,
    about: Mapping[str, str],
    outputs: Outputs,
    finals: Sequence[Path],
) -> Iterator[Charge]:
    """Open the ledger if anything is released.

    Args:
        about: of the run, for the ledger's chain; no source text.
        finals: the output files.

    Raises:
        RequestError: if the ledger cannot be used.
    """
    if mode != "release":
        yield NoCharge()
        return
    if params.keys == "plain" and not has_subjects:
        raise RequestError(
            "params.yaml: release.keys is plain, so the ledger would name texts by themselves; give --subject-column, "
            "or set release.keys: hashed"
        )
    with Ledger.open(params.ledger, keys=params.keys) as ledger:
        for line in recovered_as_text(ledger.recovered):
            print(line, file=sys.stderr)
        with ledger.begin({**about, "lexveil": version()}) as release:
            yield LedgerCharge(release, params, outputs, finals)


def subjects_of(chunk: Chunk) -> list[str]:
    """The subject of each row, as the ledger's keys: without a subject column each text is its own subject, recognized
    by its content. The two kinds of key never meet: no value of a column holds a NUL.
    """
    if chunk.subjects is not None:
        return chunk.subjects
    texts = ("\0".join("\1" if text is None else text for text in row) for row in chunk.texts)
    return [f"\0text:{hashlib.sha256(text.encode()).hexdigest()}" for text in texts]
