"""Transaction that charges a release to the budget ledger, with the states requested, reserved,
spent, written and committed. Noise is never drawn before its epsilon is charged.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from lexveil.base.errors import ParameterError, RequestError
from lexveil.base.runtime.objects import ObjectPath
from lexveil.base.types import Floats
from lexveil.release.ledger import chain
from lexveil.release.ledger.amounts import budget_nano, cap_nano, costs, nano_epsilon
from lexveil.release.ledger.balances import check_count, give_back
from lexveil.release.ledger.caps import fix_cap
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.database import Database, text
from lexveil.release.ledger.locks import Lock, sync
from lexveil.release.ledger.output_files import (
    File,
    absolute,
    discard,
    is_own,
    roll_forward,
    store,
    stored,
)
from lexveil.release.ledger.reservation import (
    Asked,
    ExhaustedError,
    Reservation,
    ask,
    charge,
    forget,
)
from lexveil.release.ledger.subjects import Hasher

if TYPE_CHECKING:
    import pyarrow as pa

ENDED = ("committed", "aborted", "failed")
PUT_RIGHT = "correct that and run `lexveil ledger show`, which continues the release"


class Transaction:
    """The ledger transaction of one release, begun by ``Ledger.begin``. The transaction is a
    context manager. Leaving the context before the release is published ends the release.

        step of a run            call        state         if the run ends at this point
        ───────────────────────  ──────────  ────────────  ────────────────────────────────────
        count the input          request     open          aborted: nothing was reserved
             (a judge may refuse)
        all is counted           reserve     reserved      aborted: the reservation is returned
             (a judge may refuse)
        before the first noise   spend       spent         failed: the epsilon stays spent
        draw, write hidden files
             (a judge may refuse)
        all is on the disk       written     written       the next process that opens the ledger
        give files their names   publish     committed     completes the release
        or: a stream has ended   commit      committed

    ``request`` is called once for each chunk. ``reserve`` returns a ``Reservation``, which tells
    who is charged and who is withheld. ``Charge`` (lexveil.release.charge) makes these calls for a
    run, and calls a ``Judge`` (lexveil.release.run) at the three marked points. If the process
    dies, the next process that opens the ledger aborts, fails or completes the release. Spent
    epsilon is never returned, even if no noise was drawn.

    Attributes:
        id: unique id of the release in ledger and record.
        state: open, reserved, spent, written, committed; aborted (nothing spent) or failed (spent,
            nothing published).
        head: hash of the ledger's last log entry after ``reserve``, which the privacy record
            states; None before.
    """

    def __init__(
        self, database: Database, hasher: Hasher, plain: bool, lock: Lock, name: str, number: int
    ) -> None:
        self.id = name
        self.state = "open"
        self.head: str | None = None
        self._database = database
        self._hasher = hasher
        self._plain = plain
        self._lock = lock
        self._number = number
        # largest epsilon of one document
        self._n_documents = 0
        self._largest = 0.0
        self._is_bulk = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self.state in ("open", "reserved", "spent"):
                # Suppress an error of the abort, which would hide the first error. The next
                # process that opens the ledger then aborts the release.
                with (
                    contextlib.suppress(RequestError)
                    if error is not None
                    else contextlib.nullcontext()
                ):
                    self.abort(
                        "its context ended before it was published"
                        if kind is None
                        else kind.__name__
                    )
        finally:
            self._end()

    def knows_ended(self, name: str) -> bool:
        """Return whether the ledger has a release with this id that has ended."""
        states = self._database.rows("select state from releases where id = ?", (name,))
        return bool(states) and states[0][0] in ENDED

    def request(self, subjects: Sequence[str], epsilon: Floats) -> None:
        """Request epsilon for the next documents, in order.

        Args:
            subjects: (n,) keys of the subjects of the documents; they are hashed, and the keys
                themselves are not stored.
            epsilon: (n,) nats that each document will spend, at least 0.

        Raises:
            RequestError: if a key is not a text or is empty, or the disk of temporary files is
                full.
            ParameterError: if an epsilon is negative or not finite, or the numbers of subjects and
                epsilons differ.
        """
        self._must_be("open", "request")
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if epsilon.shape != (len(subjects),) or not np.all(np.isfinite(epsilon) & (epsilon >= 0)):
            raise ParameterError(
                "epsilon must be one number for each subject, finite and at least 0"
            )
        self._ask([(subjects, nano_epsilon(epsilon).tolist())])
        self._largest = max(self._largest, float(epsilon.max(initial=0.0)))

    def _ask(self, parts: Iterable[tuple[Sequence[str], Sequence[int]]]) -> None:
        n_documents = self._n_documents

        def asked() -> Iterator[Asked]:
            nonlocal n_documents
            for subjects, nano in parts:
                n = len(subjects)
                first = n_documents
                hashes = self._hasher.all(subjects, first)
                n_documents += n
                keys = subjects if self._plain else [None] * n
                yield Asked([self._number] * n, list(range(first, first + n)), hashes, nano, keys)

        try:
            with self._database.errors():
                ask(self._database.con, asked())
        except UnicodeEncodeError:
            raise RequestError(
                "a subject's key is not valid Unicode, and a ledger of plain keys cannot "
                "store it; correct the key"
            ) from None
        # count the documents now, because documents that were not stored must not count as charged
        self._n_documents = n_documents

    def reserve_in_bulk(
        self,
        batches: Iterable[pa.RecordBatch],
        budget: float,
        cap: float | Literal["own"] | None,
        on_exhausted: Literal["withhold", "refuse"] = "withhold",
        spends: bool = False,
        usual: float | None = None,
    ) -> Reservation:
        """Charge each subject for all of its documents together. If the documents of a subject do
        not all fit under the cap, charge nothing to the subject.

        This method replaces ``request`` and ``reserve`` for a job that counts its documents
        elsewhere. Rows of one subject are added up. ``withheld_subjects`` of the result names the
        subjects whose documents must be left out.

        Args:
            batches: batches that can be iterated once, with the columns `subject` (text, the key)
                and `nano` (int64, nano-epsilon).
            budget: document budget B, for the ledger's log; the ledger does not know the number of
                documents of a row.
            cap, on_exhausted, spends, usual: see ``reserve``.

        Raises:
            ExhaustedError, ParameterError: see ``reserve``; also if a batch has other columns, or
                amounts below 0.
            RequestError: if a key is not a text or is empty.
        """
        import pyarrow as pa

        from lexveil.release.ledger.spool import Spool

        self._must_be("open", "reserve_in_bulk")
        if self._n_documents:
            raise ParameterError(
                "documents were requested one by one in this transaction; call "
                "reserve_in_bulk in a new transaction"
            )
        keys = Spool(pa.schema([("subject", pa.string())]))
        self._is_bulk = True

        def parts() -> Iterator[tuple[list[str], list[int]]]:
            for batch in batches:
                if (
                    batch.schema.names != ["subject", "nano"]
                    or batch.schema.field("nano").type != pa.int64()
                ):
                    raise ParameterError(
                        "batches of a bulk reservation must have the columns subject (text) "
                        "and nano (int64)"
                    )
                subjects, nano = batch.columns
                if nano.null_count or (batch.num_rows and nano.to_numpy().min() < 0):
                    raise ParameterError(
                        "the amounts nano of a bulk reservation must be whole numbers of at least 0"
                    )
                keys.add(pa.record_batch([subjects.cast(pa.string())], names=["subject"]))
                yield subjects.to_pylist(), nano.to_numpy().tolist()

        self._ask(parts())
        reserved = self.reserve(budget, cap, on_exhausted, (), spends, usual)
        reserved.keys = keys
        return reserved

    def reserve(
        self,
        budget: float,
        cap: float | Literal["own"] | None,
        on_exhausted: Literal["withhold", "refuse"] = "withhold",
        partials: Iterable[Path | str] = (),
        spends: bool = False,
        usual: float | None = None,
    ) -> Reservation:
        """Charge all requested documents as far as their subjects' budget cap allows, in one
        transaction, and return the reservation.

        The documents of a subject are charged in order as long as the subject's spending and
        reservations, in this release and all others, stay at or below the cap. Later documents are
        withheld.

        Args:
            budget: document budget B; a document costs ceil(ε · 1e9) nano-epsilon, and never more
                than ceil(B · 1e9).
            cap: largest epsilon of one subject over all releases. None records spending and
                withholds nothing. ``own`` is the cap that the ledger itself stores; if it stores
                none, the cap is set to ten times ``usual``.
            on_exhausted: the action if documents would be withheld.
            partials: files that may be written from now on, besides the files named to ``begin``.
            spends: whether to ``spend`` the reservation in the same transaction.
            usual: the epsilon that a text of ordinary length may spend; None takes the document
                budget.

        Raises:
            ExhaustedError: with ``refuse``, if a document would be withheld; nothing is reserved
                then.
            ParameterError: if budget or cap is not a positive number, or a document spends more
                than the budget.
        """
        self._must_be("open", "reserve")
        limit = None if cap is None or cap == "own" else cap_nano(cap)
        is_new = False
        # costs() raises an error if an epsilon is above the budget
        costs(np.array([self._largest]), budget)
        with self._database.transaction() as con:
            self._still(con)
            n_balances = check_count(con)
            if cap == "own":
                limit, is_new = fix_cap(con, usual or budget)
            most = None if self._is_bulk else budget_nano(budget)
            reserved = charge(con, self._number, self._n_documents, most, limit)
            if on_exhausted == "refuse" and reserved.n_withheld:
                documents = (reserved.n_withheld, reserved.n_documents)
                subjects = (reserved.n_exhausted, reserved.n_subjects)
                raise ExhaustedError.of(limit or 0, documents, subjects)
            announce(con, self._number, partials, self._lock.path.parent)
            n_balances += reserved.n_new
            payload = {"budget": budget_nano(budget), "balances": n_balances, **reserved.payload()}
            entry = chain.append(con, self.id, "reserved", payload)
            con.execute(
                "update releases set state = 'reserved', budget = ?, cap = ?, reserved_seq = "
                "? where number = ?",
                (payload["budget"], limit, entry.seq, self._number),
            )
            if spends:
                self._spend(con)
        self.state = "spent" if spends else "reserved"
        self.head = entry.hash
        reserved.head = entry.hash
        reserved.is_new_cap = is_new
        return reserved

    def spend(self) -> None:
        """Spend the reserved epsilon durably. After this step noise may be drawn, and the epsilon
        is never returned.
        """
        self._must_be("reserved", "spend")
        with self._database.transaction() as con:
            self._still(con)
            self._spend(con)
        self.state = "spent"

    def _spend(self, con: Connection) -> None:
        con.execute("update releases set state = 'spent' where number = ?", (self._number,))
        chain.append(con, self.id, "spent", {})

    def written(self, files: Iterable[tuple[Path | str, Path | str, str]]) -> None:
        """Record that all output files are written. After this step, recovery from a crash
        completes the release.

        Args:
            files: partial path, final path and sha256 in hex of each file.

        Raises:
            RequestError: if a file does not exist.
        """
        self._must_be("spent", "written")
        new = [File(absolute(partial), absolute(final), digest) for partial, final, digest in files]
        announced = {file.partial for file in stored(self._database, self._number)}
        for file in new:
            if file.partial not in announced:
                raise ParameterError(
                    f"{file.partial}: the file was named neither to begin nor to reserve"
                )
            _check_publishable(file)
        with self._database.transaction() as con:
            self._still(con)
            store(con, self._number, new)
            con.execute("update releases set state = 'written' where number = ?", (self._number,))
            published = [{"final": str(file.final), "sha256": file.sha256} for file in new]
            chain.append(con, self.id, "written", {"files": published})
        self.state = "written"

    def publish(self) -> None:
        """Move the written files to their final paths, and commit.

        Raises:
            RequestError: if a file cannot be renamed. The release is charged, and the next process
                that opens the ledger tries again.
        """
        self._must_be("written", "publish")
        try:
            lost = roll_forward(stored(self._database, self._number), trusted=True)
        except OSError as error:
            why = (
                f"the output cannot be moved to its final path ({error.strerror}), and it "
                "is already charged"
            )
            raise RequestError(f"{error.filename2 or error.filename}: {why}; {PUT_RIGHT}") from None
        self._commit({"lost": lost} if lost else {})
        if lost:
            raise RequestError(
                f"{'; '.join(lost)}: somebody removed the written files, and the release "
                "stays charged"
            )

    def commit(self) -> None:
        """Commit the release without files, after the whole output was sent to a stream."""
        self._must_be("spent", "commit")
        self._commit({})

    def abort(self, because: str = "aborted") -> None:
        """End the release: remove unpublished files, and return the reserved epsilon unless it is
        spent.
        """
        if self.state not in ("open", "reserved", "spent"):
            raise RequestError(
                f"release {self.id} is {self.state}; a release can be aborted only before "
                "it is written"
            )
        if ended := undo(self._database, self._number, self.id, {"because": because}):
            self.state = ended

    def _commit(self, payload: dict[str, object]) -> None:
        with self._database.transaction() as con:
            self._still(con)
            finish(con, self._number, self.id, payload)
        self.state = "committed"

    def _must_be(self, state: str, call: str) -> None:
        if self.state != state:
            raise RequestError(
                f"release {self.id} is {self.state}, but {call} needs a release that is {state}"
            )

    def _still(self, con: Connection) -> None:
        """Check that the database contains this release in the state that this object has. The
        folder of the ledger may have been replaced meanwhile.
        """
        row = con.execute(
            "select state from releases where number = ? and id = ?", (self._number, self.id)
        ).fetchone()
        if row != (self.state,):
            raise RequestError(
                f"release {self.id} is {(row[0] if row else 'unknown')} in the ledger, but "
                f"{self.state} in this process, because the ledger was replaced or its "
                "locks do not work; nothing was published"
            )

    def _end(self) -> None:
        with contextlib.suppress(RequestError), self._database.errors():
            forget(self._database.con, self._number)
        self._lock.release(remove=self.state in ENDED)


def announce(con: Connection, number: int, partials: Iterable[Path | str], locks: Path) -> None:
    """Store in the ledger the paths of the files that a release may write from now on, so that
    recovery can remove the files.

    Args:
        locks: folder with the locks of this machine's releases. A release without a lock in it is a
            release of another machine, which has its files.

    Raises:
        RequestError: if another unfinished release writes one of the files, because the recovery of
            that release would remove the file.
    """
    files = [File(absolute(partial)) for partial in partials]
    for file in files:
        others = con.execute(
            text("ledger/writer"), {"release": number, "partial": os.fsencode(file.partial)}
        ).fetchall()
        for name, state in others:
            if not (locks / name).exists():
                continue
            writer = f"release {name}, which is {state}, writes this file too"
            raise RequestError(
                f"{file.partial}: {writer}; wait until that release has ended, or choose "
                "another output"
            )
    store(con, number, files)


def undo(database: Database, number: int, name: str, payload: dict[str, object]) -> str | None:
    """End a release without publishing it. The files are removed first, so that no file remains
    whose epsilon is not paid. Then the state of the release changes.

    The reservation of a release is returned unless it is spent. Spent epsilon is not returned,
    because noise may have been drawn.

    Returns:
        ``aborted`` or ``failed``; None if the release is already written or committed, which an
            interruption may have hidden from the caller.

    Raises:
        RequestError: if a file cannot be removed; the release then keeps its state.
    """
    ((state,),) = database.rows("select state from releases where number = ?", (number,))
    ended = {"open": "aborted", "reserved": "aborted", "spent": "failed"}.get(state)
    if ended is None:
        return None
    try:
        discard(stored(database, number))
    except OSError as error:
        kept = "" if state == "spent" else " and its reservation is not returned"
        why = (
            f"the file cannot be removed ({error.strerror}), so release {name} stays {state}{kept}"
        )
        raise RequestError(f"{error.filename}: {why}; {PUT_RIGHT}") from None
    with database.transaction() as con:
        if ended == "aborted":
            payload = payload | {"balances": give_back(con, number)}
        con.execute("delete from files where release = ?", (number,))
        con.execute("update releases set state = ? where number = ?", (ended, number))
        chain.append(con, name, ended, payload)
    return ended


def finish(con: Connection, number: int, name: str, payload: dict[str, object]) -> None:
    """Mark a release as committed, inside a transaction."""
    con.execute("update releases set state = 'committed' where number = ?", (number,))
    chain.append(con, name, "committed", payload)


def _check_publishable(file: File) -> None:
    """Check that a written file can be moved to its final path by a rename, after flushing the file
    to the disk.
    """
    assert file.final is not None
    try:
        sync(file.partial)
        sync(file.partial.parent)
        status = file.partial.lstat()
        is_object = isinstance(file.final, ObjectPath)
        if not is_object and status.st_dev != file.final.parent.stat().st_dev:
            raise RequestError(
                f"{file.partial}: the file is on another file system than {file.final}; "
                "write it next to that file"
            )
    except OSError as error:
        raise RequestError(
            f"{error.filename}: the file cannot be published ({error.strerror})"
        ) from None
    if not is_own(status):
        raise RequestError(
            f"{file.partial}: the file is a link, has a second name, or belongs to another "
            "user, so nothing was published"
        )
    if not is_object and file.final.is_dir():
        raise RequestError(f"{file.final}: the output is a folder; choose another output")
