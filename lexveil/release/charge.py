"""Charges of rewritten texts to the budget ledger. Only releases are charged, not experiments."""

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
    """Options for charging the budget ledger in a server process: which client is charged, and how.

    Attributes:
        about: further facts for the ledger's log; no text.
        lock_timeout: seconds to wait for other processes that use the ledger.
        single_commit: whether to spend the reserved epsilon in the same transaction, which saves
            one durable write. The caller must then draw the noise at once, because spent epsilon
            cannot be returned.
        tells_operator: whether the log warns of subjects whose names look alike. A service must not
            warn, because its log may not depend on requests.
        on_spent: function that is called with the transaction's id once its epsilon is durably
            spent.
        client: the client of a service, whose subjects have keys of their own; None uses keys that
            all callers share.
    """

    about: Mapping[str, str] = field(default_factory=dict)
    lock_timeout: float = PATIENCE
    single_commit: bool = False
    tells_operator: bool = True
    on_spent: Callable[[str], None] | None = None
    client: str | None = None


STAYS_SPENT = "noise had been drawn, so the epsilon stays spent"


class Charge:
    """The charge of one run to the budget ledger, made step by step: request, reserve, spend,
    publish.

    ``Transaction`` shows the steps in a diagram. This base class charges nothing, as for an
    experiment.
    """

    def request(
        self, chunk: Chunk, epsilon: npt.NDArray[np.float64], keys: Sequence[str] | None = None
    ) -> None:
        """Request a charge for the rows of a chunk; ``reserve`` later reserves the requested
        epsilon.

        Args:
            epsilon: (n_rows,) the epsilon that each row will spend.
            keys: the subject keys of the rows, if a worker has already computed them from the
                texts.
        """

    def reserve(self, budget: DocumentBudget) -> None:
        """Reserve the requested epsilon of all rows whose subjects have enough budget left."""

    def withheld(self, start: int, stop: int) -> Flags:
        """Return, for each row in a range, whether the row is withheld because its subject has too
        little budget. Rows are counted from 0 in the order of the requests.
        """
        return np.zeros(stop - start, dtype=bool)

    def entry(self) -> LedgerEntry | None:
        """Return the ledger entry for the privacy record, or None if nothing is charged."""
        return None

    def costs(self) -> LedgerCosts | None:
        """Return the charged costs, which only the operator may see, or None if nothing is
        charged.
        """
        return None

    def spend(self) -> None:
        """Spend the reserved epsilon, once and before any noise is drawn. No epsilon is returned
        after this step.
        """

    def publish(self, outputs: Outputs) -> None:
        """Publish the outputs. For a stream, record instead that the whole output has been sent."""
        outputs.publish()


@dataclass(slots=True)
class LedgerCharge(Charge):
    """The charge of a release to the budget ledger. Each method makes one step of the release's
    transaction.
    """

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
        """Request a charge for the rows of a chunk."""
        keys = keys if keys is not None and chunk.subjects is None else subjects_of(chunk)
        if self.options.client is not None:
            keys = keys_of_client(self.options.client, keys)
        if chunk.subjects is not None:
            self.near.add(keys)
        self.release.request(keys, epsilon)

    def reserve(self, budget: DocumentBudget) -> None:
        """Reserve the requested epsilon of all rows whose subjects have enough budget left. If the
        input has no words, all costs are 0.
        """
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
        """Reserve the total cost of each subject, all or nothing. Yield the keys of the subjects
        whose rows must be withheld.

        Args:
            batches: batches with the columns ``subject``, the key of a subject, and ``nano``, its
                cost in whole nano-epsilon. Each subject occurs once.
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
        """The budget cap of a subject, in the form that ``Transaction.reserve`` takes."""
        cap = self.params.cap
        return "own" if cap is None else None if cap == "unlimited" else cap

    def _tell_operator(self, reserved: Reservation, budget: DocumentBudget) -> None:
        if reserved.is_new_cap and self.cap is not None:
            longest = budget.longest(self.cap)
            withheld = ""
            if longest is not None:
                withheld = f"; a row of more than {longest:,} {budget.drawn} is withheld"
            LOG.warning(
                f"the ledger has a cap from now on: {self.cap:g} epsilon per subject over "
                f"all releases, enough for {TIMES} of {budget.usual_text}{withheld}. To "
                "change the cap: `lexveil ledger cap N --because TEXT`, or lexveil.toml: "
                "ledger.cap (a number, or unlimited)",
                extra=PUBLIC,
            )
        if self.options.tells_operator and (n_before := reserved.n_charged - reserved.n_new):
            LOG.warning(
                f"private to the operator: {n_before:,} of {reserved.n_charged:,} "
                f"{self.unit} were charged before, and their epsilon adds up (`lexveil "
                "ledger show`). The figures about an adversary are for one output; two "
                "outputs of a text disclose more than one"
            )
        if self.options.tells_operator and (n_near := self.near.count()):
            LOG.warning(
                f"private to the operator: {n_near:,} subjects differ from other subjects "
                "in capitals or punctuation only, and each has its own budget; if two of "
                "them are one person, give both the same name"
            )

    @property
    def unit(self) -> str:
        """The noun for subjects in messages: "subjects", or "texts" if each text is its own
        subject.
        """
        return "subjects" if self.has_subjects else "texts"

    @property
    def _reservation(self) -> Reservation:
        assert self.reserved is not None
        return self.reserved

    @property
    def cap(self) -> float | None:
        """The budget cap of a subject, or None if there is no cap or nothing is reserved yet."""
        return (
            None if self.reserved is None or self.reserved.cap is None else self.reserved.cap / NANO
        )

    def withheld(self, start: int, stop: int) -> Flags:
        """Return, for each row in a range, whether the row is withheld because its subject has too
        little budget.
        """
        return self._reservation.withheld(start, stop)

    def entry(self) -> LedgerEntry:
        """Return the ledger entry for the privacy record: the id and the cap of the transaction.

        The charged amounts are omitted, because they depend on private texts. The hash of the
        ledger's last log entry is omitted, because it discloses the time of the charge.
        """
        return LedgerEntry(id=self.release.id, cap=self.cap)

    def costs(self) -> LedgerCosts:
        """Return the charged costs, with the hash of the ledger's last log entry."""
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
        """Spend the reserved epsilon durably."""
        if not self.options.single_commit:
            self.release.spend()
            self._tell()

    def _tell(self) -> None:
        if self.options.on_spent is not None:
            self.options.on_spent(self.release.id)

    def publish(self, outputs: Outputs) -> None:
        """Publish the outputs. If the process dies after the state ``written``, the next opening of
        the ledger completes the publication.
        """
        if outputs.target is None:
            self.release.commit()
            return
        files = [
            (partial.absolute(), final.absolute(), outputs.sha256(final))
            for partial, final in outputs.settle()
        ]
        self.release.written(files)
        # The ledger owns the outputs now: if a rename fails, recovery needs the hidden files.
        outputs.forget()
        self.release.publish()

    def fail(self, error: BaseException) -> None:
        """Extend the message of an error that occurs after noise was drawn: the epsilon stays
        spent.
        """
        if self.release.state != "spent" or self.reserved is None or not self.reserved.total:
            return
        if isinstance(error, LexveilError) and error.args:
            error.args = (f"{error.args[0]}; {STAYS_SPENT}", *error.args[1:])
        elif isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            error.add_note(STAYS_SPENT)  # for callers that replace the error's message
        else:
            LOG.warning(STAYS_SPENT)


def ledger_of(project: Project, on_exhausted: OnExhausted | None = None) -> LedgerParams:
    """Return the budget ledger's settings for a project, with the ledger's location. A given
    ``on_exhausted`` overrides the project's setting.
    """
    params = project.configuration.ledger
    places = {name: str(project.path(getattr(params, name))) for name in ("folder", "anchor")}
    return params.model_copy(update={**places, "on_exhausted": on_exhausted or params.on_exhausted})


def cap_now(params: LedgerParams) -> Cap:
    """Return the budget cap that a subject would have in a release now, for a preview.

    The result is None if the first release will set the cap, or if the ledger cannot be read; the
    latter is logged.
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
    """Return the charge of a run. For a release, open the budget ledger; for an experiment, return
    a charge that does nothing.

    Args:
        about: further facts about the run for the ledger's log; no source text.
        finals: the output files.
        options: options of a process that serves many clients; None for a process with one user.

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
            LOG.info(
                f"this folder belongs to no project, so the ledger is your own, {params.folder}"
            )
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
    """Return the key of each row's subject, by the rule of
    ``lexveil.core.accounting.subject_keys``.

    Raises:
        RequestError: if a subject's name is blank.
    """
    if chunk.subjects is None:
        return text_keys(chunk.texts)
    keys = [subject_key(name) for name in chunk.subjects]
    if "" in keys:
        raise RequestError(
            f"row {chunk.first + keys.index(''):,}: its subject is blank; every row must "
            "name its subject, because the ledger charges the subject's budget"
        )
    return keys
