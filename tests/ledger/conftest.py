"""A ledger in a folder of its own."""

import os

import pytest

from lexveil.release.ledger import database
from lexveil.release.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """No waiting for the disk: what a power cut leaves is what tests/crash_states is about."""

    def quick(con):
        con.execute("pragma synchronous = off")

    monkeypatch.setattr(database, "durable", quick)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder):
    with Ledger.open(folder) as opened:
        yield opened
