"""A ledger in a folder of its own."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lexveil.release.ledger import database
from lexveil.release.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch) -> None:
    """No waiting for the disk: what a power cut leaves is what tests/crash_states is about."""

    def quick(con: sqlite3.Connection) -> None:
        con.execute("pragma synchronous = off")

    monkeypatch.setattr(database, "durable", quick)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    with Ledger.open(folder) as opened:
        yield opened
