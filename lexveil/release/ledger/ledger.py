"""The budget ledger of a folder: its creation, its opening, and the recovery of releases whose
process died.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from lexveil.base.errors import MissingArtifactError, ParameterError, RequestError
from lexveil.core.accounting.subject_keys import KEYS_RULE
from lexveil.release.ledger import chain
from lexveil.release.ledger.amounts import NANO, cap_nano
from lexveil.release.ledger.anchor import LOCK, Anchor, check_absent
from lexveil.release.ledger.anchor import read as anchor_of
from lexveil.release.ledger.balances import count, rebuild
from lexveil.release.ledger.caps import own_cap
from lexveil.release.ledger.database import Database, Store
from lexveil.release.ledger.locks import sync, take
from lexveil.release.ledger.output_files import absolute, make_folder, roll_forward, stored
from lexveil.release.ledger.stores import store_of
from lexveil.release.ledger.subjects import SALT_BYTES, Hasher, fingerprint
from lexveil.release.ledger.transaction import ENDED, Transaction, announce, finish, undo

SALT = "salt"
LOCKS = "locks"
MAKING = "making"  # lock of the process that creates a ledger

PATIENCE = 300.0  # seconds to wait; a release of ten million documents reserves in less


@dataclass(frozen=True, slots=True)
class Recovered:
    """A release that was recovered after its process died: its state before and after, and notes on
    lost files.
    """

    release: str
    was: str
    now: str
    notes: list[str]


class Ledger:
    """The budget ledger of one folder, for use in one thread. The ledger is a context manager,
    which closes it.

    Attributes:
        folder: absolute path of the folder with the salt and the locks of this machine's releases.
        name: name of the tables' storage, for messages.
        database: the tables.
        hasher: function object that hashes keys of subjects.
        keys: ``hashed`` or ``plain``, the form of stored keys.
        keys_rule: version of the rule that turns keys into subjects.
        recovered: releases of dead processes that this opening aborted or completed.
        anchor: the anchor file; None if the ledger has no anchor.
        refusal: the error that is raised at any spending before `lexveil ledger accept`, because
            the ledger does not match its anchor; None if it matches.
    """

    def __init__(
        self, folder: Path, meta: Mapping[str, str], database: Database, hasher: Hasher
    ) -> None:
        self.name = database.name
        self.hasher = hasher
        self.database = database
        self.folder = folder
        self.keys = meta["keys"]
        self.keys_rule = meta["keys_rule"]
        self.recovered: list[Recovered] = []
        self.refusal: str | None = None
        self.anchor: Anchor | None = None

    @classmethod
    def open(
        cls,
        folder: Path | str,
        keys: Literal["hashed", "plain"] | None = "hashed",
        *,
        patience: float = PATIENCE,
        make: bool = True,
        anchor: Path | str | None = None,
        accepts: bool = False,
        address: str | None = None,
    ) -> Self:
        """Open the ledger of a folder, and recover the releases of dead processes.

        Args:
            folder: folder of the ledger.
            keys: whether subjects' keys are also stored in plain text; None takes the setting of
                the ledger.
            patience: seconds to wait while other processes use the ledger.
            make: whether to create a ledger if the folder has none.
            anchor: file of the anchor, outside the folder; None for no anchor.
            accepts: whether the caller will ``accept`` the ledger. If so, a missing ledger is
                created although an anchor exists, and nothing is recovered.
            address: address of a PostgreSQL database with the tables, for machines that share them;
                None for a file in the folder. The folder of each machine has a copy of the same
                salt.

        Raises:
            RequestError: if the ledger is damaged, lacks its salt, or cannot be written, or if it
                is missing although its anchor exists.
            MissingArtifactError: without ``make``, if there is no ledger.
        """
        folder = absolute(folder)
        store = store_of(folder, address)
        if not make and not (folder / SALT).exists() and not store.exists():
            raise MissingArtifactError(
                f"{folder} has no ledger yet; the first release or `lexveil ledger cap` creates it"
            )
        if anchor is not None and not accepts and not store.exists():
            check_absent(absolute(anchor), store.name)
        salt = _salt(folder, store, keys or "hashed", make)
        database = store.open(patience)
        try:
            meta = dict(database.rows("select name, value from meta"))
            if meta.get("salt") != fingerprint(salt):
                raise RequestError(
                    f"{folder / SALT}: the file is not the salt of this ledger; restore the "
                    "salt from your copy"
                )
            if keys is not None and meta.get("keys") != keys:
                raise RequestError(
                    f"{store.name}: this ledger was created with {meta.get('keys')} keys, "
                    f"but lexveil.toml: ledger.keys is {keys}; write {meta.get('keys')}"
                )
            ledger = cls(folder, meta, database, Hasher(salt))
            database.con.mac = ledger.hasher.mac
            if anchor is not None:
                ledger.anchor = database.guard = Anchor(absolute(anchor), folder, fingerprint(salt))
            try:
                ledger.check_anchor()
            except RequestError as error:
                ledger.refusal = str(error)
            else:
                if not accepts:
                    ledger.recover()
        except BaseException:
            database.close()
            raise
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def check_anchor(self) -> None:
        """Check that the ledger matches its anchor file (a record of its last log entry outside the
        ledger), or create the file for a new ledger.

        Raises:
            RequestError: if the ledger does not match.
        """
        if (anchor := self.anchor) is None:
            return
        while True:
            # Read the anchor before the snapshot. Other processes continue meanwhile, so an anchor
            # that is read later may name an entry that the snapshot lacks.
            mark = anchor.mark()
            with self.database.snapshot() as con:
                try:
                    anchor.check(con, mark)
                    last = chain.newest(con)
                    break
                except RequestError:
                    if anchor.mark() == mark:
                        raise
            # Another process has changed the anchor since it was read, or has created the anchor of
            # a new ledger.
        if last is not None and last.seq == 1:
            anchor.write(last.seq, last.hash)

    def accept(self, because: str) -> int:
        """Continue with the current ledger although it contradicts its anchor or its balances, and
        record this decision and its reason in the ledger's log.

        Balances are recomputed as sums of the charges of all releases.

        Returns:
            Number of balances that were wrong.
        """
        anchor = self.anchor
        self.database.guard = None
        assert anchor is not None
        try:
            mark = anchor_of(anchor.path)
        except RequestError:
            mark = None
        with self.database.transaction() as con:
            said = None if mark is None else {"entries": mark.entries, "head": mark.head}
            n_wrong = rebuild(con)
            payload = {
                "because": because,
                "anchor": said,
                "corrected": n_wrong,
                "balances": count(con),
            }
            entry = chain.append(con, None, "accepted", payload)
        anchor.write(entry.seq, entry.hash, is_accepted=True)
        self.database.guard = anchor
        self.refusal = None
        self.recover()
        return n_wrong

    def cap(self) -> float | None:
        """Return the budget cap that the ledger itself stores, which applies if lexveil.toml sets
        no cap. The result is None if no cap is stored or the stored cap is "no limit".
        """
        with self.database.snapshot() as con:
            cap = own_cap(con)
        return None if cap is None or cap.nano is None else cap.nano / NANO

    def set_cap(self, cap: float | None, because: str) -> None:
        """Change the budget cap that the ledger itself stores, and record the reason. A cap of None
        removes the limit.

        Raises:
            ParameterError: if the cap is not a positive number.
        """
        nano = None if cap is None else cap_nano(cap)
        with self.database.transaction() as con:
            chain.append(con, None, "cap", {"cap": nano, "because": because})

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def begin(self, about: dict[str, object], partials: Iterable[Path | str] = ()) -> Transaction:
        """Begin a release, after recovering the releases of processes that have died since the
        ledger was opened.

        Args:
            about: facts for the ledger's log, as JSON: mechanism, metric, mode; never a text or a
                subject's key.
            partials: files that may be written before they are published. They are removed if the
                release is not published.

        Raises:
            RequestError: if another unfinished release writes one of these files, or the ledger
                computes subjects from keys by another rule.
        """
        self.check_anchor()
        if self.keys_rule != KEYS_RULE:
            raise RequestError(
                f"{self.name}: this ledger identifies subjects by an older rule, so their "
                "earlier spending would not count (docs/explanation/ledger.md, Subject "
                "keys). Name another folder in lexveil.toml: ledger.folder, and lower "
                "ledger.cap by the largest balance that `lexveil ledger show --top 1` shows"
            )
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
        chain.canonical(about)
        self.recover()
        # Take the lock before the row exists, so that other processes know that the row's process
        # is alive. Wait, because a recovery may be examining a lock without a row.
        lock = take(self._lock_of(name), wait=True)
        assert lock is not None
        try:
            if self.database.is_shared:
                # the lock file alone shows that this machine must recover the release
                sync(self.folder / LOCKS)
            with self.database.transaction() as con:
                insert = (
                    "insert into releases (number, id, state) select "
                    "coalesce(max(number), 0) + 1, ?, 'open' "
                )
                ((number,),) = con.execute(
                    f"{insert} from releases returning number", (name,)
                ).fetchall()
                announce(con, number, partials, self.folder / LOCKS)
                chain.append(con, name, "opened", {"about": about})
        except BaseException:
            lock.release(remove=True)
            raise
        return Transaction(self.database, self.hasher, self.keys == "plain", lock, name, number)

    def recover(self) -> None:
        """Abort or complete the releases whose process has ended. Releases of running processes
        stay unchanged.
        """
        states = "('open', 'reserved', 'spent', 'written')"
        rows = self.database.rows(
            f"select id, number from releases where state in {states} order by number"
        )
        # In a shared ledger, each machine recovers its own releases, because it has their files.
        unfinished = {
            name: number
            for name, number in rows
            if not self.database.is_shared or self._lock_of(name).exists()
        }
        ended = {path.name for path in (self.folder / LOCKS).iterdir()} - {
            MAKING,
            LOCK,
            *unfinished,
        }
        # Remove locks without an unfinished release. The release has ended, or its process died
        # before the row existed.
        for name in (*unfinished, *ended):
            if (lock := take(self._lock_of(name))) is not None:
                try:
                    done = self._recover_one(unfinished[name], name) if name in unfinished else None
                    self.recovered += [] if done is None else [done]
                finally:
                    rows = self.database.rows("select state from releases where id = ?", (name,))
                    lock.release(remove=not rows or rows[0][0] in ENDED)

    def _recover_one(self, number: int, name: str) -> Recovered | None:
        # Read the state again under the lock, because another process may have recovered the
        # release meanwhile.
        ((state,),) = self.database.rows("select state from releases where number = ?", (number,))
        if state in ENDED:
            return None
        try:
            if state != "written":
                ended = undo(self.database, number, name, {"because": "its process ended"})
                return Recovered(name, state, ended or state, [])
            lost = roll_forward(stored(self.database, number), trusted=False)
        except RequestError as error:
            return Recovered(name, state, state, [str(error)])
        except OSError as error:
            note = (
                f"{error.filename2 or error.filename}: the release cannot be recovered "
                f"({error.strerror})"
            )
            return Recovered(name, state, state, [note])
        with self.database.transaction() as con:
            finish(con, number, name, {"recovered": True, "lost": lost})
        return Recovered(name, state, "committed", lost)

    def _lock_of(self, name: str) -> Path:
        return self.folder / LOCKS / name


def _salt(folder: Path, store: Store, keys: str, make: bool) -> bytes:
    """Return the secret salt of a ledger, after creating the ledger if there is none."""
    salt = folder / SALT
    if make and not (salt.exists() and store.exists()):
        _make(folder, store, keys)
    if not store.exists():
        raise _gone(store)
    try:
        content = salt.read_bytes() if salt.exists() else b""
    except OSError as error:
        raise RequestError(
            f"{salt}: the salt cannot be read ({error.strerror}); check its permissions"
        ) from None
    if len(content) != SALT_BYTES:
        raise _unsalted(folder)
    return content


def _make(folder: Path, store: Store, keys: str) -> None:
    """Create the ledger of a folder, or complete a creation that was killed.

    The salt gets its name last. Therefore a database without a salt, or a salt without a database,
    means that somebody removed the other file, and never that a crash occurred. A missing file is
    not replaced by a new one, because the spending so far would no longer count.
    """
    if keys not in ("hashed", "plain"):
        raise ParameterError(f"keys is {keys!r}, but it must be hashed or plain")
    salt = folder / SALT
    partial = folder / f".{SALT}.partial"
    try:
        for path in (folder, folder / LOCKS):
            make_folder(path, mode=0o700)
        making = take(folder / LOCKS / MAKING, wait=True)
        assert making is not None
        try:
            if salt.exists():
                if not store.exists():
                    raise _gone(store)
                return
            if store.exists():
                if not partial.exists():
                    raise _unsalted(folder)
            else:
                # git ignores the folder wherever it is
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content := secrets.token_bytes(SALT_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
                sync(folder)
                store.make({"keys": keys, "keys_rule": KEYS_RULE, "salt": fingerprint(content)})
            os.replace(partial, salt)
            sync(folder)
        finally:
            making.release(remove=False)
    except OSError as error:
        why = (
            f"the ledger cannot be created ({error.strerror}); name another folder in "
            "lexveil.toml: ledger.folder"
        )
        raise RequestError(f"{error.filename or folder}: {why}") from None


def _gone(store: Store) -> RequestError:
    return RequestError(
        f"{store.name} is missing, but its salt exists; restore the database from your "
        "copy, or move the folder away, which discards the spending of every subject"
    )


def _unsalted(folder: Path) -> RequestError:
    return RequestError(
        f"{folder / SALT} is missing or incomplete; restore it from your copy, or from "
        "another machine that uses the ledger, because with another salt all subjects could "
        "spend their cap again"
    )
