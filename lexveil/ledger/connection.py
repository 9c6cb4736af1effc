"""What a ledger asks of the engine that keeps its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

Parameters = Mapping[str, Any] | Sequence[Any]


class ResultRows(Protocol):
    """The rows of a small result."""

    def __iter__(self) -> Iterator[Any]: ...
    def fetchone(self) -> Any: ...  # noqa: D102
    def fetchall(self) -> list[Any]: ...  # noqa: D102


class Connection(Protocol):
    """What a ledger asks of an engine. SQL is one text for all; its parameters are ? in order, or $name.

    Attributes:
        mac: the keyed hash of a subject and its balance.
        in_order: ends a query that fills a temporary table whose key is `subject`, so that rows lie in its order.
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

    def seal(self, mac: Callable[[Any, Any, Any, Any], bytes | None]) -> None:
        """Put what balances become from temp.charges into temp.sealed.

        Args:
            mac: what a new keyed hash is, of subject, balance, its keyed hash, and what is paid; in order of subjects.
        """
        ...

    def analyze(self, table: str) -> None:
        """Tell the planner of a temporary table that was filled."""
        ...

    def close(self) -> None: ...  # noqa: D102
