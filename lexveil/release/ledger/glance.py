"""Read access to a ledger without any change: no ledger is created, and no unfinished release is
completed or aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from lexveil.base.errors import RequestError
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.ledger import SALT
from lexveil.release.ledger.output_files import absolute
from lexveil.release.ledger.stores import store_of
from lexveil.release.ledger.subjects import Hasher, fingerprint

# seconds to wait for other processes; a caller that only reads does not wait for a release
PATIENCE = 5.0
TOGETHER = 500  # number of subjects in one query


@contextmanager
def look_into(folder: Path | str, address: str | None) -> Iterator[Connection | None]:
    """Open a ledger for reading without changing it. Yield a connection that sees one state, or
    None if there is no ledger yet.

    Args:
        address: address of a PostgreSQL database with the tables; None for a file in the folder.

    Raises:
        RequestError: if the ledger cannot be read.
    """
    store = store_of(folder, address)
    if not store.exists():
        yield None
        return
    with closing(store.open(PATIENCE, read_only=True)) as opened, opened.snapshot() as con:
        yield con


def spent_in(folder: Path | str, address: str | None, keys: Iterable[str]) -> dict[str, int]:
    """Return the epsilon that subjects have spent according to the ledger in a folder, in
    nano-epsilon, as a mapping from the subject's key. Subjects that have spent nothing are omitted.
    The result is empty if there is no ledger yet.

    Args:
        address: address of a PostgreSQL database with the tables; None for a file in the folder.
        keys: the keys of the subjects.

    Raises:
        RequestError: if the ledger cannot be read, or lacks its salt.
    """
    folder = absolute(folder)
    salt = folder / SALT
    if not salt.exists():
        return {}
    with look_into(folder, address) as con:
        if con is None:
            return {}
        try:
            content = salt.read_bytes()
        except OSError as error:
            raise RequestError(
                f"{salt}: the salt cannot be read ({error.strerror}); check its permissions"
            ) from None
        meta = dict(con.execute("select name, value from meta").fetchall())
        if meta.get("salt") != fingerprint(content):
            raise RequestError(
                f"{salt}: the file is not the salt of this ledger; restore the salt from your copy"
            )
        return dict(_spent(con, Hasher(content), keys))


def _spent(con: Connection, hasher: Hasher, keys: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the key and the balance of each given subject that has a balance."""
    left = iter(keys)
    while some := list(islice(left, TOGETHER)):
        key_of = {hasher.one(key): key for key in some}
        marks = ", ".join("?" * len(key_of))
        query = f"select subject, nano from balances where subject in ({marks})"
        for subject, nano in con.execute(query, [*key_of]).fetchall():
            yield key_of[subject], nano
