"""Any change in the database is detected, and the report names the entry."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from few_words import asked, edit, spend, write

from lexveil import Ledger, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.release.ledger.anchor import Mark
from lexveil.release.ledger.chain import START, Entry
from lexveil.release.ledger.verification import as_text, verify


@pytest.fixture
def used(folder, tmp_path):
    """Entries: 1 created, 2 to 6 a release with files, 7 to 9 one aborted, 10 to 13 one with a
    cap."""
    with Ledger.open(folder, "plain") as ledger:
        with ledger.begin({"mechanism": "madlib"}, [tmp_path / "p", tmp_path / "q"]) as release:
            asked(release, "ana", "ben", "ana")
            (tmp_path / "p").write_text("text")
            (tmp_path / "q").write_text(
                json.dumps({"release": {"id": release.id, "head": release.head}})
            )
            outputs = [("p", "out"), ("q", "out.record.json")]
            release.spend()
            release.written(
                [(tmp_path / a, tmp_path / b, sha256(tmp_path / a)) for a, b in outputs]
            )
            release.publish()
        with ledger.begin({}) as release:
            asked(release, "zoe")
            release.abort()
        spend(ledger, "ana", "cat", cap=3.0)
    return folder


def rehash(folder, first):
    """Recompute the hashes of the chain, as a forger does who knows its construction."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as con, con:
        previous = START
        for row in con.execute("select * from entries order by seq").fetchall():
            entry = Entry(*row)
            if entry.seq >= first:
                entry = Entry(*row[:5], previous, "")
                rehashed = (previous, entry.right_hash(), entry.seq)
                con.execute("update entries set previous = ?, hash = ? where seq = ?", rehashed)
            previous = entry.right_hash()


def places(folder, *records):
    checked = verify(folder, records)
    assert checked.holds == (not checked.problems)
    return [problem.where for problem in checked.problems]


def anchored(folder, seq):
    """The anchor of the ledger when it had so many entries."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as con:
        ((head, salt),) = con.execute(
            "select hash, value from entries, meta where seq = ? and name = 'salt'", (seq,)
        )
    anchor = folder.with_name(f"anchor-{seq}.json")
    anchor.write_text(Mark(entries=seq, head=head, salt=salt).model_dump_json())
    return anchor


def test_what_nobody_changed_holds(used, tmp_path):
    """Verification needs no salt and writes nothing."""
    (used / "salt").unlink()
    before = {path: path.stat().st_mtime_ns for path in used.rglob("*")}
    checked = verify(used, [tmp_path / "out.record.json"])
    assert {path: path.stat().st_mtime_ns for path in used.rglob("*")} == before
    assert checked.problems == [] and checked.holds
    assert (checked.entries, checked.subjects) == (13, 3)
    assert checked.releases == {"aborted": 1, "committed": 2}


TABLES = ("releases", "files", "spends", "balances")
A = "(select subject from names where key = 'ana')"


@pytest.mark.parametrize(
    # where it is found, and where since entry 9 or 11: the last release
    ("statement", "where", "since"),
    [
        ("update entries set time = '2020' where seq = 3", "entry 3", None),
        (
            "update entries set payload = replace(payload, '3000000000', '4000000000') where "
            "seq = 11",
            "entry 11",
            "entry ",
        ),
        ("update entries set payload = 'x' where seq = 9", "entry 9", ""),
        ("update entries set payload = 'x' where seq = 13", "entry 13", "entry 13"),
        ("delete from entries where seq = 7", "entry 8", None),
        ("delete from entries where seq > 5", "release", "entry "),
        (
            f"update spends set nano = nano - 1 where release = 1 and subject = {A}",
            "entry 3",
            "subject",
        ),
        (
            f"update spends set nano = nano - 1 where release = 1 and subject <> {A}",
            "entry 3",
            None,
        ),
        ("update spends set nano = 'much' where release = 1", "entry 3", ""),
        ("insert into spends values (3, x'01', 5)", "entry 11", "entry 11"),
        (
            "insert into spends values (9, x'01', 5)",
            "spends of release number 9",
            "spends of release number 9",
        ),
        ("update releases set state = 'aborted' where number = 3", "release", "release"),
        ("delete from releases where number = 2", "release", None),
        ("insert into releases (id, state) values ('x', 'open')", "release x", "release x"),
        (f"update balances set nano = nano - 1 where subject = {A}", "subject", "subject"),
        (f"delete from balances where subject = {A}", "subject", "subject"),
        (f"update balances set mac = x'00' where subject = {A}", "subject", "subject"),
        ("update files set sha256 = 'x'", "release", None),
        ("update names set key = 'eve' where key = 'ana'", "subject", None),
        ("update meta set value = 'hashed' where name = 'keys'", "entry 1", "names"),
        ("drop table spends", "ledger.sqlite", "ledger.sqlite"),
    ],
)
def test_a_change_is_found_where_it_was_made(used, tmp_path, statement, where, since):
    # before the last release, and in the middle of it
    anchors = [anchored(used, 9), anchored(used, 11)]
    for anchor in anchors:
        checked = verify(used, [tmp_path / "out.record.json"], since=anchor)
        assert (checked.problems, checked.entries, checked.subjects, checked.releases) == (
            [],
            13,
            2,
            {"committed": 1},
        )
    edit(used, statement)
    assert any(place.startswith(where) for place in places(used)), verify(used).problems
    for anchor in anchors if since != "" else []:
        checked = verify(used, since=anchor)
        assert f"not verified: the {checked.since} entries up to the anchor" in " ".join(
            as_text(checked)
        )
        assert (
            any(one.where.startswith(since) for one in checked.problems) if since else checked.holds
        )


@pytest.mark.parametrize(
    ("statements", "where"),
    [
        (
            [
                "update entries set payload = replace(payload, '3000000000', '9000000000') "
                "where seq = 11"
            ],
            "release",
        ),
        (
            [
                "delete from entries where seq = 13",
                "update releases set state = 'spent' where number = 3",
            ],
            None,
        ),
        (["update entries set kind = 'aborted' where seq = 13"], "release"),
        (["update entries set kind = 'reserved' where seq = 13"], "entry 13"),
    ],
)
def test_a_chain_made_again_still_has_to_fit_the_rest(used, statements, where):
    edit(used, *statements)
    rehash(used, 2)
    found = places(used)
    assert any(place.startswith(where) for place in found) if where else found == []


NOTHING = ["delete from entries where seq > 1", *(f"delete from {table}" for table in TABLES)]
NOT_ENDED = [
    "delete from entries where seq > 3",
    "delete from releases where number > 1",
    "delete from files",
    "delete from spends where release > 1",
    "update releases set state = 'reserved'",
    "delete from balances where subject not in (select subject from spends)",
    f"update balances set nano = 2000000000 where subject = {A}",
]


@pytest.mark.parametrize(
    ("cut", "says"), [(NOTHING, "truncated"), (NOT_ENDED, "has the state reserved, not committed")]
)
def test_records_find_what_was_cut_short(used, tmp_path, cut, says):
    """The end of a chain can be cut off unseen; the record that a release left outside cannot."""
    edit(used, *cut)
    (used / "salt").unlink()  # with it the keyed hashes of balances would tell
    assert places(used) == []
    (problem,) = verify(used, [tmp_path / "out.record.json"]).problems
    assert says in problem.what


def test_a_record_that_was_changed(used, tmp_path):
    record = tmp_path / "out.record.json"
    record.write_text(record.read_text() + " ")
    assert "was changed since" in verify(used, [record]).problems[0].what
    record.write_text('{"release": {"id": "\\ud800"}}')
    # and the ledger is not to blame
    with pytest.raises(RequestError, match="is not the record of a release"):
        verify(used, [record])


def test_a_cap_that_was_broken_is_found(folder):
    """The test simulates a wrong rule of withholding: everything is consistent except the cap."""
    with Ledger.open(folder) as ledger:
        spend(ledger, "ana", "ana", cap=2.0)
        spend(ledger, "ana")
    assert places(folder) == []  # without a cap all is allowed
    edit(
        folder,
        "update releases set cap = 2500000000 where number = 2",
        "update entries set payload = replace(payload, '\"cap\":null', '\"cap\":2500000000') "
        "where seq = 7",
    )
    rehash(folder, 2)
    for since in (None, anchored(folder, 5)):
        (problem,) = verify(folder, since=since).problems
        assert "to 3 epsilon, above the cap of 2.5" in problem.what and problem.where.startswith(
            "subject "
        )


def test_damaged_pages(used):
    """If bytes anywhere in the file are overwritten, the verification reports a problem or an error
    in words, never a traceback or "holds"."""
    file = used / "ledger.sqlite"
    good = file.read_bytes()
    rng = np.random.default_rng(1)
    for start in range(4096, len(good), 4096):
        file.write_bytes(good[:start] + rng.bytes(4096) + good[start + 4096 :])
        assert not verify(used).holds


def test_a_release_on_its_way_is_left_alone(folder, tmp_path):
    with Ledger.open(folder) as ledger, ledger.begin({}, [tmp_path / ".f"]) as release:
        asked(release, "ana")
        assert verify(folder).releases == {"reserved": 1}
        write(release, tmp_path, "f")
        assert verify(folder).holds and (tmp_path / ".f").exists()
        release.publish()
