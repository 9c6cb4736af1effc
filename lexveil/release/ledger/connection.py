"""Interface between a budget ledger and the database engine that stores its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

Parameters = Mapping[str, Any] | Sequence[Any]
# function that returns the new keyed hash for (subject, balance, old keyed hash, payment, spending)
Mac = Callable[[Any, Any, Any, Any, Any], bytes | None]


class ResultRows(Protocol):
    """Interface of the rows of a small query result."""

    def __iter__(self) -> Iterator[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: D102
    def fetchall(self) -> list[Any]: ...  # noqa: D102


class Connection(Protocol):
    """Interface of a connection to the database engine of a ledger. All engines get the same SQL,
    with parameters ? in order, or $name.

    Attributes:
        mac: function that returns the keyed hash of a subject and its balance.
        in_order: SQL clause for queries that fill a temporary table with the key `subject`, so that
            its rows are stored in the order of the key.
        in_transaction: whether a transaction is open.
    """

    mac: Callable[[object, object], bytes | None]
    in_order: ClassVar[str]

    @property
    def in_transaction(self) -> bool: ...  # noqa: D102

    def execute(self, sql: str, parameters: Parameters = (), /) -> ResultRows: ...  # noqa: D102

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Any]:
        """Return the rows of a large result in constant memory. Other statements may run
        meanwhile.
        """
        ...

    def scratch(self, table: str, columns: str) -> None:
        """Create an empty temporary table with the primary key `subject`, replacing an existing
        one.
        """
        ...

    def fill(self, table: str, columns: str, parts: Iterable[Sequence[Any]]) -> None:
        """Insert many rows into a temporary table. Each part has the values of every column."""
        ...

    def seal(self, mac: Mac, spent: str, release: int | None) -> None:
        """Compute the new balances of temp.charges and write them to temp.sealed. New balances may
        go to their table directly.

        Args:
            mac: function that checks a balance and returns its new keyed hash; it is called in the
                order of subjects.
            spent: SQL expression for the spending of a subject, a whole number.
            release: number of the release for the charges; None records no charges.
        """
        ...

    def analyze(self, table: str) -> None:
        """Update the planner's statistics about a temporary table that was filled."""
        ...

    def close(self) -> None: ...  # noqa: D102
