"""The ledger's own cap, for releases whose lexveil.toml has no cap."""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from lexveil.base.errors import RequestError
from lexveil.release.ledger import chain
from lexveil.release.ledger.amounts import MOST, NANO, budget_nano
from lexveil.release.ledger.connection import Connection

TIMES = 10  # releases of a text of ordinary length that the ledger's own cap is enough for


class OwnCap(NamedTuple):
    """The ledger's own cap in nano-epsilon (None for no limit), and whether this release
    fixed it.
    """

    nano: int | None
    is_new: bool = False


def own_cap(con: Connection) -> OwnCap | None:
    """Return the ledger's own cap from the newest entry about it; None if there is none.

    Raises:
        RequestError: if that entry was changed.
    """
    entry = chain.newest(con, "cap")
    if entry is None:
        return None
    if entry.right_hash() != entry.hash:
        raise RequestError(
            f"entry {entry.seq}, which says the ledger's cap, was changed; bring back your "
            "last copy"
        )
    return OwnCap(json.loads(entry.payload)["cap"])


def fix_cap(con: Connection, budget: float) -> OwnCap:
    """Return the ledger's own cap, which is fixed now if there is none: ``TIMES`` the budget that a
    text of ordinary length may spend.
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
    """Return the cap of a subject that a release would meet now; None if there is none, so that the
    first release will fix one.

    Args:
        configured: the cap of lexveil.toml, which takes precedence over the ledger's own.

    Raises:
        RequestError: as ``own_cap``.
    """
    own = own_cap(con) if configured is None else None
    if own is None:
        return configured
    return "unlimited" if own.nano is None else own.nano / NANO
