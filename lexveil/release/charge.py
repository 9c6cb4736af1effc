"""Charge an output to the budget ledger, if anything is released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.logs import PUBLIC, logger
from lexveil.base.runtime.hashes import version
from lexveil.base.runtime.user_data import is_of_user, make_user_data
from lexveil.base.types import Flags
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.operator_report import LedgerCosts
from lexveil.core.accounting.record import LedgerEntry
from lexveil.core.accounting.subject_keys import (
    NearCollisions,
    keys_of_client,
    subject_key,
    text_keys,
)
from lexveil.io.artifacts.project import Project
from lexveil.io.config import LedgerParams
from lexveil.io.formats.chunks import Chunk
from lexveil.io.request import OnExhausted
from lexveil.release.ledger.amounts import NANO
from lexveil.release.ledger.caps import TIMES, Cap, cap_of
from lexveil.release.ledger.glance import look_into
from lexveil.release.ledger.ledger import PATIENCE, Ledger
from lexveil.release.ledger.reservation import Reservation
from lexveil.release.ledger.statement import recovered_as_text
from lexveil.release.ledger.transaction import Transaction
from lexveil.release.outputs import Outputs
from lexveil.release.preconditions import require_named_subjects

LOG = logger(__name__)


@dataclass(frozen=True, slots=True)
class ChargeOptions:
    """Options of a charge in a process that serves many clients: the client that is charged, and
    the manner of the charge.

    Attributes:
        about: further facts for the ledger's chain; no text.
        lock_timeout: seconds to wait for other processes that use the ledger.
        single_commit: spend what is reserved in the same transaction, for one durable write less:
            who asks for it draws noise at once, and has nothing in between that could still give
            the epsilon back.
        tells_operator: whether the log warns of subjects whose names look alike. A service does not
            warn, because its log holds nothing that follows from a request.
        on_spent: hears of the transaction's id once its epsilon is durably spent.
        client: the client of a service, whose subjects have keys of their own; None shares the keys
            of subjects.
    """

    about: Mapping[str, str] = field(default_factory=dict)
    lock_timeout: float = PATIENCE
    single_commit: bool = False
    tells_operator: bool = True
    on_spent: Callable[[str], None] | None = None
    client: str | None = None


STAYS_SPENT = "noise had been drawn, so the epsilon stays spent"


class Charge:
    """The charge of a run, step by step, as the picture of ``Transaction`` shows; this one charges
    nothing, as for an experiment.
    """

    def request(
        self, chunk: Chunk, epsilon: npt.NDArray[np.float64], keys: Sequence[str] | None = None
    ) -> None:
        """Request the charge for the rows of a chunk; ``reserve`` then reserves what was requested.

        Args:
            epsilon: (n_rows,) the epsilon that each row will spend.
            keys: the keys of the rows by their texts, if a worker has computed them already.
        """

    def reserve(self, budget: DocumentBudget) -> None:
        """Reserve the cost of all rows whose subjects have budget left."""

    def withheld(self, start: int, stop: int) -> Flags:
        """Return whether each row is withheld. Rows are counted from 0 in the order of the
        requests.
        """
        return np.zeros(stop - start, dtype=bool)

    def entry(self) -> LedgerEntry | None:
        """Return the entry of the ledger that the record shows; None if nothing is charged."""
        return None

    def costs(self) -> LedgerCosts | None:
        """Return the costs that only the operator may see; None if nothing is charged."""
        return None

    def spend(self) -> None:
        """Spend the reservation, once and before any noise is drawn. Nothing is given back after
        this step.
        """

    def publish(self, outputs: Outputs) -> None:
        """Publish the outputs. For a stream, record instead that all of the output has left."""
        outputs.publish()


@dataclass(slots=True)
class LedgerCharge(Charge):
    """The charge of a release: each step is one of its transaction in the ledger."""

    release: Transaction
    params: LedgerParams
    outputs: Outputs
    finals: Sequence[Path]
    options: ChargeOptions = field(default_factory=ChargeOptions)
    reserved: Reservation | None = None
    budget: DocumentBudget | None = None
    near: NearCollisions = field(default_factory=NearCollisions)
    has_subjects: bool = False

    def request(
        self, chunk: Chunk, epsilon: npt.NDArray[np.float64], keys: Sequence[str] | None = None
    ) -> None:
        """Request the charge for the rows of a chunk."""
        keys = keys if keys is not None and chunk.subjects is None else subjects_of(chunk)
        if self.options.client is not None:
            keys = keys_of_client(self.options.client, keys)
        if chunk.subjects is not None:
            self.near.add(keys)
        self.release.request(keys, epsilon)

    def reserve(self, budget: DocumentBudget) -> None:
        """Reserve the cost of the rows. If the input has no words, all costs are 0."""
        self.budget = budget
        partials = (
            [partial for partial, _ in self.outputs.all_names(self.finals)]
            if self.outputs.target
            else []
        )
        self.reserved = self.release.reserve(
            budget.total or 1.0,
            self._limit,
            self.params.on_exhausted,
            [Path(partial).absolute() for partial in partials],
            spends=self.options.single_commit,
            usual=budget.usual or 1.0,
        )
        if self.options.single_commit:
            self._tell()
        self._tell_operator(self.reserved, budget)

    def reserve_in_bulk(
        self, batches: Iterable[pa.RecordBatch], budget: DocumentBudget
    ) -> Iterator[list[str]]:
        """Reserve the cost of each subject as a whole; return the keys of the subjects whose rows
        are all withheld.

        Args:
            batches: ``subject``, its key, and ``nano``, whole nano-epsilon; each subject once.
        """
        self.budget = budget
        terms = (budget.total or 1.0, self._limit, self.params.on_exhausted)
        reserved = self.reserved = self.release.reserve_in_bulk(
            batches, *terms, usual=budget.usual or 1.0
        )
        self._tell_operator(reserved, budget)
        return (batch.column("subject").to_pylist() for batch in reserved.withheld_subjects())

    @property
    def _limit(self) -> float | Literal["own"] | None:
        """The cap in the form that the ledger takes."""
        cap = self.params.cap
        return "own" if cap is None else None if cap == "unlimited" else cap

    def _tell_operator(self, reserved: Reservation, budget: DocumentBudget) -> None:
        if reserved.is_new_cap and self.cap is not None:
            longest = budget.longest(self.cap)
            withheld = ""
            if longest is not None:
                withheld = f"; a row of more than {longest:,} perturbed tokens is withheld"
            LOG.warning(
                f"the ledger has a cap from now on: {self.cap:g} epsilon of one subject over "
                f"all releases, enough for {TIMES} of {budget.usual_text}{withheld}. To change it: "
                "`lexveil ledger cap N --because TEXT`, or lexveil.toml: ledger.cap (a number, or "
                "unlimited)",
                extra=PUBLIC,
            )
        if self.options.tells_operator and (n_before := reserved.n_charged - reserved.n_new):
            LOG.warning(
                f"private to the operator: {n_before:,} of {reserved.n_charged:,} {self.unit} "
                "were charged before, and what they spend adds up: `lexveil ledger show`. What is "
                "said of a reader is of one output: two outputs of a text tell more of it than one"
            )
        if self.options.tells_operator and (n_near := self.near.count()):
            LOG.warning(
                f"private to the operator: {n_near:,} subjects differ from others in capitals "
                "or punctuation only; each has a budget of its own: if two of them are one "
                "person, give both the same name"
            )

    @property
    def unit(self) -> str:
        """The word for those who pay in messages: subjects or texts."""
        return "subjects" if self.has_subjects else "texts"

    @property
    def _reservation(self) -> Reservation:
        assert self.reserved is not None
        return self.reserved

    @property
    def cap(self) -> float | None:
        """The cap of a subject; None before the reservation, or if subjects have no cap."""
        return (
            None if self.reserved is None or self.reserved.cap is None else self.reserved.cap / NANO
        )

    def withheld(self, start: int, stop: int) -> Flags:
        """Return whether each row is withheld."""
        return self._reservation.withheld(start, stop)

    def entry(self) -> LedgerEntry:
        """Return the id and the cap of the transaction. The charged amounts stay private, because
        they count private texts, and so does the head of the ledger, because it tells the time of
        the payment.
        """
        return LedgerEntry(id=self.release.id, cap=self.cap)

    def costs(self) -> LedgerCosts:
        """Return the costs that were charged, with the ledger's head, which anchors the chain."""
        reserved = self._reservation
        return LedgerCosts(
            id=self.release.id,
            head=reserved.head,
            cap=self.cap,
            documents_requested=reserved.n_documents,
            documents_charged=reserved.n_documents - reserved.n_withheld,
            documents_withheld=reserved.n_withheld,
            subjects=reserved.n_subjects,
            subjects_near=self.near.count(),
            subjects_exhausted=reserved.n_exhausted,
            subjects_charged=reserved.n_charged,
            subjects_charged_before=reserved.n_charged - reserved.n_new,
            epsilon_charged=reserved.total / NANO,
            largest_balance=reserved.largest_balance / NANO,
            longest_row=self._longest_row(),
        )

    def _longest_row(self) -> int | None:
        if self.budget is None or self.cap is None:
            return None
        return self.budget.longest(self.cap)

    def spend(self) -> None:
        """Spend the reservation durably."""
        if not self.options.single_commit:
            self.release.spend()
            self._tell()

    def _tell(self) -> None:
        if self.options.on_spent is not None:
            self.options.on_spent(self.release.id)

    def publish(self, outputs: Outputs) -> None:
        """Publish the outputs. If the process dies after ``written``, recovery completes the
        transaction.
        """
        if outputs.target is None:
            self.release.commit()
            return
        files = [
            (partial.absolute(), final.absolute(), outputs.sha256(final))
            for partial, final in outputs.settle()
        ]
        self.release.written(files)
        # The ledger owns them now: if a rename fails, recovery needs the hidden files.
        outputs.forget()
        self.release.publish()

    def fail(self, error: BaseException) -> None:
        """Say, after a failure that follows the noise, that the epsilon stays spent. In an error of
        Lexveil the remark becomes a part of the error.
        """
        if self.release.state != "spent" or self.reserved is None or not self.reserved.total:
            return
        if isinstance(error, LexveilError) and error.args:
            error.args = (f"{error.args[0]}; {STAYS_SPENT}", *error.args[1:])
        elif isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            error.add_note(STAYS_SPENT)  # for those who say it in words of ours
        else:
            LOG.warning(STAYS_SPENT)


def ledger_of(project: Project, on_exhausted: OnExhausted | None = None) -> LedgerParams:
    """Return the settings of a project's ledger, with the ledger's location. A request's option for
    exhausted subjects takes precedence.
    """
    params = project.configuration.ledger
    places = {name: str(project.path(getattr(params, name))) for name in ("folder", "anchor")}
    return params.model_copy(update={**places, "on_exhausted": on_exhausted or params.on_exhausted})


def cap_now(params: LedgerParams) -> Cap:
    """Return the cap of a subject that a release would have now, for a preview. None if the first
    release will fix the cap, or if the ledger cannot be read; the log then says so.
    """
    if params.cap is not None:
        return params.cap
    try:
        with look_into(params.folder, params.database) as con:
            return None if con is None else cap_of(None, con)
    except RequestError as error:
        LOG.warning(f"the ledger's cap is not known: {error}")
        return None


@contextmanager
def open_charge(
    params: LedgerParams,
    mode: str,
    has_subjects: bool,
    about: Mapping[str, str],
    outputs: Outputs,
    finals: Sequence[Path],
    options: ChargeOptions | None = None,
) -> Iterator[Charge]:
    """Open the ledger if anything is released.

    Args:
        about: further facts about the run for the ledger's chain; no source text.
        finals: the output files.
        options: None is of whoever runs this process.

    Raises:
        RequestError: if the ledger cannot be used.
    """
    if mode != "release":
        yield Charge()
        return
    require_named_subjects(params, has_subjects)
    if is_of_user(params.folder):
        make_user_data()
        if not Path(params.folder).exists():
            LOG.info(f"the ledger is your own outside of projects, {params.folder}")
    options = options or ChargeOptions()
    opened = Ledger.open(
        params.folder,
        params.keys,
        anchor=params.anchor,
        patience=options.lock_timeout,
        address=params.database,
    )
    with opened as ledger:
        for line in recovered_as_text(ledger.recovered):
            LOG.warning(line, extra=PUBLIC)
        with ledger.begin({**about, **options.about, "lexveil": version()}) as release:
            charge = LedgerCharge(
                release, params, outputs, finals, options, has_subjects=has_subjects
            )
            try:
                yield charge
            except BaseException as error:
                charge.fail(error)
                raise


def subjects_of(chunk: Chunk) -> Sequence[str]:
    """Return the key of each row's subject, by the one rule of
    ``lexveil.core.accounting.subject_keys``.

    Raises:
        RequestError: if nothing is left of a subject's name.
    """
    if chunk.subjects is None:
        return text_keys(chunk.texts)
    keys = [subject_key(name) for name in chunk.subjects]
    if "" in keys:
        raise RequestError(
            f"row {chunk.first + keys.index(''):,}: its subject is blank; every row must say "
            "whom it is about, so that "
            "the ledger knows whose budget it spends"
        )
    return keys
