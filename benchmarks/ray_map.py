"""Map over items on the Ray cluster to which this machine belongs; ``benchmarks.scale`` compares
Dask with this map.
"""

from __future__ import annotations

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import numpy as np

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.crash import short_report
from lexveil.base.runtime.hashes import code_hash
from lexveil.base.runtime.project import ONE_THREAD

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray reads it at import

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

A = TypeVar("A")
B = TypeVar("B")

WORKERS = 60.0  # seconds to wait for a cluster that has no processor
READY = 10  # retries to connect to a starting node
LOOK = 5.0  # seconds between two checks for processors while waiting for a result

_functions: dict[str, Callable[[Any], Any]] = {}  # the last function that this worker received


@cache
def build_hash() -> str:
    """Return a hash of code, Python and NumPy, which must be equal on every worker so that results
    do not depend on the worker.
    """
    return f"{code_hash()} {platform.python_version()} {np.__version__}"


@ray.remote  # type: ignore[untyped-decorator]
def _call(function: list[Any], item: Any, build: str) -> Any:
    if build_hash() != build:
        raise RequestError(
            f"a Ray worker on {platform.node()} has another version of Lexveil, Python or "
            "NumPy than this process; "
            "install the same on all machines and start Ray again"
        )
    name = function[0].hex()
    try:
        if name not in _functions:
            _functions.clear()
            _functions[name] = ray.get(function[0])
        return _functions[name](item)
    except (LexveilError, ImportError):
        raise
    except Exception as error:  # workers log its message, which may contain a text
        raise RuntimeError(f"{type(error).__name__} in {short_report(error)}") from None


def connect(address: str) -> None:
    """Make this process a driver of the cluster until the process ends. A process that is connected
    stays connected.

    Raises:
        RequestError: if no Ray node of this machine answers.
    """
    if ray.is_initialized():
        return
    for left in range(READY, -1, -1):
        try:
            ray.init(
                address,
                log_to_driver=False,
                logging_level="ERROR",
                runtime_env={"env_vars": ONE_THREAD},
            )
            return
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            if not (left and isinstance(error, ConnectionError)):
                kind = type(error).__name__
                raise RequestError(
                    f"Ray at {address}: this machine is not a node of the cluster ({kind})"
                ) from None
        time.sleep(5)


def _processors() -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def cluster_map(
    function: Callable[[A], B], items: Iterable[A], address: str
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order. At most two items more than the cluster has processors are
    computed at a time.

    Each node gets ``function`` once; its workers share its arrays, read-only. If a worker dies, its
    results and its unfinished items are computed again.

    Raises:
        RequestError: if this machine is not a node of the cluster, or a worker has other code.
        LexveilError: if an item killed several workers, or all processors were lost. A LexveilError
            of ``function`` is raised here.
        RuntimeError: for any other exception of ``function``, with its name and place but without
            its message.
    """
    connect(address)
    pending: deque[Any] = deque()
    try:
        sent = [ray.put(function)]
        for item in items:
            pending.append(_call.remote(sent, item, build_hash()))
            if len(pending) > _processors() + 1:
                yield _result(pending.popleft())
        while pending:
            yield _result(pending.popleft())
    except RayError as error:
        raise _explained(error) from None
    finally:
        with suppress(Exception):  # it must not hide another error
            for left in pending:
                ray.cancel(left, force=True)


def _result(reference: Any) -> Any:
    """Return the result, waiting as long as the cluster has processors or may soon have one again.

    Raises:
        LexveilError: if there was no processor for ``WORKERS`` seconds.
    """
    alone = 0.0
    while alone < WORKERS:
        try:
            return ray.get(reference, timeout=LOOK)
        except GetTimeoutError:
            alone = 0.0 if _processors() else alone + LOOK
    raise LexveilError(
        f"the Ray cluster has had no processor for {WORKERS:.0f} s; start a node: ray start "
        "--address …"
    )


def _explained(error: RayError) -> Exception:
    """Return the error to raise: the error of the function, or one with advice."""
    if isinstance(error, RayTaskError):
        cause: Exception = error.cause
        if isinstance(cause, LexveilError) or "failed to import" not in str(cause):
            return cause
        return RequestError(
            "a Ray worker does not find the code of Lexveil; install the same on all "
            "machines and start Ray again"
        )
    return LexveilError(
        f"several Ray workers were lost at the same item ({type(error).__name__}); if memory "
        "ran out, give fewer processors to a node (ray start --num-cpus) or more memory"
    )
