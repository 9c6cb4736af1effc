"""Choice between SQLite and PostgreSQL for the storage of a ledger's tables."""

from __future__ import annotations

from pathlib import Path

from lexveil.release.ledger.database import Store


def store_of(folder: Path | str, address: str | None) -> Store:
    """Return the PostgreSQL storage if an address is given, and otherwise the SQLite file in the
    ledger's folder.
    """
    if address is None:
        return Store(Path(folder))
    from lexveil.release.ledger.postgresql import ServerStore

    return ServerStore(address)
