"""A look at a ledger that changes nothing."""

import pytest
from few_words import asked, spend

from lexveil import Ledger, RequestError
from lexveil.release.ledger import glance as looking
from lexveil.release.ledger.amounts import NANO
from lexveil.release.ledger.glance import spent_in


def test_it_has_the_balances_of_those_who_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(looking, "TOGETHER", 2)  # subjects of one query
    with Ledger.open(tmp_path / "ledger") as ledger:
        spend(ledger, "ana", "ben", "ana", "zoe")
    found = spent_in(tmp_path / "ledger", None, ["nobody", "ana", "ben"])
    assert found == {"ana": 2 * NANO, "ben": NANO}


def test_no_ledger_is_made(tmp_path):
    assert spent_in(tmp_path / "ledger", None, ["ana"]) == {}
    assert not [*tmp_path.iterdir()]


def test_no_release_is_recovered(tmp_path):
    with Ledger.open(tmp_path / "ledger") as ledger, ledger.begin({}) as release:
        asked(release, "ana")
        state = ledger.database.rows("select state from releases")
        spent_in(tmp_path / "ledger", None, ["ana"])
        assert ledger.database.rows("select state from releases") == state


def test_another_salt_is_refused(tmp_path):
    with Ledger.open(tmp_path / "ledger") as ledger:
        spend(ledger, "ana")
    (tmp_path / "ledger" / "salt").write_bytes(bytes(32))
    with pytest.raises(RequestError, match="is not the salt of this ledger"):
        spent_in(tmp_path / "ledger", None, ["ana"])
