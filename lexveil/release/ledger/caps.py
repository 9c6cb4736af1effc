"""The budget cap that a ledger itself stores, for releases whose lexveil.toml sets no cap."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from lexveil.base.errors import RequestError
from lexveil.release.ledger import chain
from lexveil.release.ledger.amounts import MOST, NANO, budget_nano
from lexveil.release.ledger.connection import Connection

# number of releases of a text of ordinary length for which the ledger's own cap is enough
TIMES = 10


class OwnCap(NamedTuple):
    """The budget cap that a ledger itself stores: nano-epsilon per subject (None for no limit), and
    whether the current release set it.
    """

    nano: int | None
    is_new: bool = False


def own_cap(con: Connection) -> OwnCap | None:
    """Return the budget cap that the ledger itself stores, from the newest log entry about it, or
    None if no entry sets a cap.

    Raises:
        RequestError: if that entry was changed.
    """
    entry = chain.newest(con, "cap")
    if entry is None:
        return None
    if entry.right_hash() != entry.hash:
        raise RequestError(
            f"entry {entry.seq}, which sets the ledger's cap, was changed; restore your "
            "last copy of the ledger"
        )
    return OwnCap(json.loads(entry.payload)["cap"])


def fix_cap(con: Connection, budget: float) -> OwnCap:
    """Return the budget cap that the ledger itself stores. If there is none, set it to ``TIMES``
    times the budget that a text of ordinary length may spend.
    """
    if (cap := own_cap(con)) is not None:
        return cap
    nano = min(TIMES * budget_nano(budget), MOST)
    chain.append(
        con,
        None,
        "cap",
        {"cap": nano, "because": f"enough for {TIMES} releases of a text of ordinary length"},
    )
    return OwnCap(nano, is_new=True)


Cap = float | Literal["unlimited"] | None


def cap_of(configured: Cap, con: Connection) -> Cap:
    """Return the budget cap of a subject in a release now, or None if no cap is set yet, so that
    the first release would set one.

    Args:
        configured: the cap of lexveil.toml, which takes precedence over the cap that the ledger
            stores.

    Raises:
        RequestError: if the ledger's entry about its own cap was changed.
    """
    own = own_cap(con) if configured is None else None
    if own is None:
        return configured
    return "unlimited" if own.nano is None else own.nano / NANO
