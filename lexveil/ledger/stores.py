"""Where the tables of a ledger are."""

from __future__ import annotations

from pathlib import Path

from lexveil.ledger.database import Store


def store_of(folder: Path | str, address: str | None) -> Store:
    """The tables in PostgreSQL if there is an address, else in the ledger's folder."""
    if address is None:
        return Store(Path(folder))
    from lexveil.ledger.postgresql import ServerStore

    return ServerStore(address)
