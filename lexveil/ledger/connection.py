"""What a ledger asks of the engine that keeps its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

Parameters = Mapping[str, Any] | Sequence[Any]
# What a new keyed hash is, of subject, balance, its keyed hash, what is paid, and what was spent.
Mac = Callable[[Any, Any, Any, Any, Any], bytes | None]


class ResultRows(Protocol):
    """The rows of a small result."""

    def __iter__(self) -> Iterator[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: D102
    def fetchall(self) -> list[Any]: ...  # noqa: D102


class Connection(Protocol):
    """What a ledger asks of an engine. SQL is one text for all; its parameters are ? in order, or
    $name.

    Attributes:
        mac: the keyed hash of a subject and its balance.
        in_order: ends a query that fills a temporary table whose key is `subject`, so that rows lie
            in its order.
        in_transaction: between ``begin`` and ``commit``.
    """

    mac: Callable[[object, object], bytes | None]
    in_order: ClassVar[str]

    @property
    def in_transaction(self) -> bool: ...  # noqa: D102

    def execute(self, sql: str, parameters: Parameters = (), /) -> ResultRows: ...  # noqa: D102

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Any]:
        """The rows of a large result, in flat memory; other statements may run meanwhile."""
        ...

    def scratch(self, table: str, columns: str) -> None:
        """Make a temporary table anew whose key is its column `subject`."""
        ...

    def fill(self, table: str, columns: str, parts: Iterable[Sequence[Any]]) -> None:
        """Put many rows into a temporary table: parts of them, each the values of every column."""
        ...

    def seal(self, mac: Mac, spent: str, release: int | None) -> None:
        """Put what balances become from temp.charges into temp.sealed; new ones may go to their
        table at once.

        Args:
            mac: called in the order of subjects.
            spent: SQL of what was spent, a whole number.
            release: number of the release that what is paid goes to; None for none.
        """
        ...

    def analyze(self, table: str) -> None:
        """Tell the planner of a temporary table that was filled."""
        ...

    def close(self) -> None: ...  # noqa: D102
