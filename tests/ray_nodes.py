"""Two nodes of Ray with a processor each, on loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from benchmarks.scale import end, ray_nodes


@pytest.fixture(scope="session")
def nodes() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of the first, and both."""
    pytest.importorskip("ray")
    started: list[subprocess.Popen[bytes]] = []
    try:
        with ray_nodes(started) as address:
            yield address, started
    finally:
        for node in started[::-1]:
            end(node)
