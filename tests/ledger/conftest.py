"""A ledger in a folder of its own."""

import pytest

from lexveil.release.ledger.ledger import Ledger


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def ledger(folder):
    with Ledger.open(folder) as opened:
        yield opened
