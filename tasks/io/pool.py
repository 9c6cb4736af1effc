"""Parallel work inside a stage: a bounded, ordered map over shards. Results do not depend on the number of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def ordered_map(function: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[B]:
    """Yield ``function(item)`` in order, at most ``workers + 2`` items under way; one worker means this process."""
    if workers <= 1:
        yield from map(function, items)
        return
    # spawn, not fork: DuckDB and Arrow run threads that a forked child would inherit half-dead.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
        pending: deque[Future[B]] = deque()
        for item in items:
            pending.append(executor.submit(function, item))
            if len(pending) > workers + 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
