"""A ledger that was lost, cut, replaced or edited is not charged, until the operator says so and
the chain has it."""

import json
import shutil
import sqlite3
from contextlib import closing, contextmanager
from functools import partial

import numpy as np
import pytest
from few_words import NANO, asked, balance, edit, spend, states

from lexveil import Ledger, MissingArtifactError, RequestError
from lexveil.release.ledger.anchor import read
from lexveil.release.ledger.verification import verify
from tests.databases.conftest import database, port  # noqa: F401


@pytest.fixture
def anchor(tmp_path):
    return tmp_path / "anchor.json"


@pytest.fixture
def used(folder, anchor):
    """ana and ben have spent 2 and 1 in two releases."""
    with Ledger.open(folder, anchor=anchor) as ledger:
        spend(ledger, "ana", "ben")
        spend(ledger, "ana")
    return folder


def refused(folder, anchor, *subjects):
    with Ledger.open(folder, anchor=anchor) as ledger, pytest.raises(RequestError) as caught:
        spend(ledger, *(subjects or ("ana",)))
    assert "lexveil ledger accept --because" in str(caught.value)
    return str(caught.value)


def accepted(folder, anchor):
    with Ledger.open(folder, anchor=anchor, accepts=True) as ledger:
        n_wrong = ledger.accept("a test")
        spend(ledger, "zoe")
        assert balance(ledger, "zoe") == NANO
    return n_wrong


def test_the_anchor_follows_the_chain(used, anchor):
    said = json.loads(anchor.read_text())
    assert (said["entries"], said["head"]) == (verify(used).entries, verify(used).head)
    assert str(used) not in anchor.read_text()
    with Ledger.open(used, anchor=anchor) as ledger:
        spend(ledger, "ana")
        assert json.loads(anchor.read_text())["entries"] == said["entries"] + 4
        anchor.write_text(json.dumps(said))  # one that is behind has met a crash
        spend(ledger, "ana")


def test_an_anchor_behind_a_link_is_written_where_the_link_leads(folder, anchor, tmp_path):
    """If the link were replaced, the other disk would keep an old anchor, which an older copy of
    the ledger would match."""
    disk = tmp_path / "disk"
    disk.mkdir()
    anchor.symlink_to(disk / "anchor.json")
    with Ledger.open(folder, anchor=anchor, accepts=True) as ledger:
        ledger.accept("the disk is new")
        spend(ledger, "ana")
    assert (
        anchor.is_symlink()
        and json.loads((disk / "anchor.json").read_text())["entries"] == verify(folder).entries
    )
    disk.rename(tmp_path / "unmounted")
    with (
        pytest.raises(RequestError, match="target does not exist"),
        Ledger.open(folder, anchor=anchor) as ledger,
    ):
        spend(ledger, "ana")


def test_a_folder_that_was_removed_is_not_made_again(used, anchor):
    shutil.rmtree(used)
    with pytest.raises(RequestError, match=r"the ledger is missing.*accept --because"):
        Ledger.open(used, anchor=anchor)
    with pytest.raises(MissingArtifactError):
        Ledger.open(used, None, make=False)
    assert not used.exists()
    assert accepted(used, anchor) == 0
    with Ledger.open(used, anchor=anchor) as ledger:
        ((payload,),) = ledger.database.rows("select payload from entries where kind = 'accepted'")
    assert (
        json.loads(payload)["because"] == "a test" and json.loads(payload)["anchor"]["entries"] == 9
    )
    assert verify(used).holds


def older_copy(used, anchor):
    shutil.copytree(used, used.with_name("copy"))
    with Ledger.open(used, anchor=anchor) as ledger:
        spend(ledger, "ana")
    shutil.rmtree(used)
    used.with_name("copy").rename(used)


def another_ledger(used, anchor):
    shutil.rmtree(used)
    with Ledger.open(used) as ledger:
        for _ in range(3):
            spend(ledger, "ana")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (older_copy, "is an older copy"),
        (another_ledger, "anchor of another ledger"),
        (lambda used, anchor: anchor.unlink(), "is missing"),
        (lambda used, anchor: edit(used, "delete from entries where seq > 7"), "was truncated"),
        (lambda used, anchor: edit(used, "delete from entries"), "was changed"),
        (
            lambda used, anchor: edit(used, "update entries set payload = '[]' where seq = 9"),
            "was changed",
        ),
    ],
)
def test_a_ledger_that_is_not_the_one_of_its_anchor_is_refused_until_it_is_accepted(
    used, anchor, spoil, says
):
    spoil(used, anchor)
    assert says in refused(used, anchor)
    accepted(used, anchor)
    with Ledger.open(used, anchor=anchor) as ledger:
        assert ledger.refusal is None


def test_an_anchor_that_disappears_on_the_way_stops_the_release(used, anchor):
    """The reservation stays until the operator accepts the ledger."""
    with Ledger.open(used, anchor=anchor) as ledger:
        with pytest.raises(RequestError, match="is missing"), ledger.begin({}) as release:
            asked(release, "ana")
            anchor.unlink()
            release.spend()
        assert states(ledger)[-1] == "reserved"
        ledger.accept("lost a disk")
        assert states(ledger)[-1] == "aborted" and balance(ledger, "ana") == 2 * NANO


def test_an_anchor_that_cannot_be_written_stops_what_comes_next(used, tmp_path):
    with Ledger.open(used, anchor=tmp_path / "anchor.json") as ledger:
        (tmp_path / "anchor.json.partial").mkdir()
        with pytest.raises(RequestError, match="cannot be written"):
            spend(ledger, "ana")
        assert balance(ledger, "ana") == 2 * NANO


@pytest.mark.parametrize(
    "statements",
    [
        ["update balances set nano = 0"],
        [
            "update balances set nano = nano - 1",
            "update spends set nano = nano - 1 where release = 1",
        ],
        ["delete from spends"],
        ["delete from balances", "delete from spends"],
        ["update spends set release = 3 where release = 1"],
    ],
)
def test_an_edited_balance_is_refused_when_it_is_spent_from(used, anchor, statements):
    edit(used, *statements)
    assert "somebody edited them" in refused(used, anchor, "ana", *map(str, range(20)))
    accepted(used, anchor)


def test_an_edited_charge_is_not_given_back(used, anchor):
    with Ledger.open(used, anchor=anchor) as ledger:
        with pytest.raises(RequestError, match="somebody edited"), ledger.begin({}) as release:
            asked(release, "ana")
            ledger.database.con.execute("update spends set nano = 3000000000 where release = 3")
            release.abort()
        assert balance(ledger, "ana") == 3 * NANO


def test_the_first_release_fixes_a_cap(folder, anchor):
    with Ledger.open(folder, anchor=anchor) as ledger:
        for is_new in (True, False):
            with ledger.begin({}) as release:
                release.request(["ana"] * 6, np.ones(6))
                reserved = release.reserve(1.0, "own")
                assert (reserved.cap, reserved.is_new_cap) == (10 * NANO, is_new)
                assert reserved.n_withheld == (0 if is_new else 2)
                release.spend()
                release.commit()
        ledger.set_cap(None, "no more")
        with ledger.begin({}) as release:
            release.request(["ana"], np.ones(1))
            assert release.reserve(1.0, "own").cap is None
    assert verify(folder).holds


@pytest.mark.parametrize("entries", [b"1e999", b"NaN", b"0", b"1" * 30, b"[" * 100_000, b"1, "])
def test_what_is_no_anchor_is_refused(tmp_path, entries):
    (tmp_path / "anchor").write_bytes(b'{"entries": %s, "head": "a", "salt": "b"}' % entries)
    with pytest.raises(RequestError, match="is not the anchor of a ledger"):
        read(tmp_path / "anchor")


@contextmanager
def state_before(file, meanwhile):
    """A state of a ledger after which other processes go on, as PostgreSQL lets them."""
    copy = file.with_suffix(".copy")
    shutil.copy(file, copy)
    meanwhile()
    with closing(sqlite3.connect(copy)) as con:
        yield con


@pytest.mark.parametrize("n_before", [0, 1, 3])
@pytest.mark.parametrize("n_meanwhile", [1, 2])
def test_a_release_of_another_process_while_the_ledger_is_read_is_no_alarm(
    folder,
    anchor,
    monkeypatch,
    n_before,
    n_meanwhile,
):
    """Between the state that is read and what its anchor says; also of a ledger that is new."""
    with Ledger.open(folder, anchor=anchor) as ledger:
        for _ in range(n_before):
            spend(ledger, "ana")
        own = ledger.database.snapshot

        def others():
            ledger.database.snapshot = own
            with Ledger.open(folder, anchor=anchor) as other:
                for _ in range(n_meanwhile):
                    spend(other, "ben")

        racing = partial(state_before, folder / "ledger.sqlite", others)
        monkeypatch.setattr(ledger.database, "snapshot", racing)
        if n_before == 0:
            anchor.unlink()  # as it is until whoever makes the ledger has written it
            monkeypatch.setattr("lexveil.release.ledger.anchor.check_absent", lambda *_: None)
        ledger.check_anchor()
        spend(ledger, "ana")
        assert read(anchor) is not None


def test_an_anchor_that_is_ahead_and_stays_so_is_an_alarm(used, anchor):
    """The alarm comes whether the anchor was read before or after the state of the ledger."""
    older = shutil.copy(used / "ledger.sqlite", used.parent / "older.sqlite")
    with Ledger.open(used, anchor=anchor) as ledger:
        spend(ledger, "ana")
    shutil.copy(older, used / "ledger.sqlite")
    assert "lacks spending" in refused(used, anchor)


def test_a_server_lets_others_go_on_while_the_ledger_is_read(
    folder,
    anchor,
    database,  # noqa: F811
    monkeypatch,
):
    """PostgreSQL itself: another connection releases after the state began that is read here."""
    with Ledger.open(folder, anchor=anchor, address=database) as ledger:
        spend(ledger, "ana")
        own = ledger.database.snapshot

        @contextmanager
        def racing():
            with own() as con:
                con.execute("select 1 from entries limit 1").fetchall()
                ledger.database.snapshot = own
                with Ledger.open(folder, anchor=anchor, address=database) as other:
                    spend(other, "ben")
                yield con

        monkeypatch.setattr(ledger.database, "snapshot", racing)
        spend(ledger, "ana")
        assert balance(ledger, "ana") == 2 * NANO
