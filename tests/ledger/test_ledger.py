"""Caps by hand, in order; what is paid, given back and published; keys that are nowhere in
clear."""

import hashlib
import hmac
import stat

import numpy as np
import pytest
from few_words import NANO, asked, balance, sha, spend, states, write

from lexveil import Ledger, RequestError
from lexveil.release.ledger.verification import verify


def test_refuse_reserves_nothing_and_names_nobody(ledger):
    spend(ledger, "ana", cap=1.0)
    with (
        pytest.raises(
            RequestError, match=r"2 of 3 documents, which belong to 1 of 2 subjects"
        ) as caught,
        ledger.begin({}) as one,
    ):
        asked(one, "ana", "ben", "ana", cap=1.0, on_exhausted="refuse")
    assert "ana" not in str(caught.value)
    assert states(ledger) == ["committed", "aborted"] and balance(ledger, "ben") == 0
    with ledger.begin({}) as release:
        assert asked(release, "ben", cap=1.0, on_exhausted="refuse").n_withheld == 0
    assert verify(ledger.folder).holds


def test_reserved_counts_while_its_release_is_on_its_way(ledger):
    with ledger.begin({}) as first:
        asked(first, "ana", cap=1.0)
        with Ledger.open(ledger.folder) as other:
            assert other.recovered == []  # the first one lives
            assert spend(other, "ana", cap=1.0).n_withheld == 1
        first.abort()
    assert spend(ledger, "ana", cap=1.0).n_withheld == 0


def test_an_error_aborts_and_leaves_no_file(ledger, tmp_path):
    partial = tmp_path / ".out"
    with pytest.raises(KeyError), ledger.begin({}, [partial]) as release:
        asked(release, "ana")
        partial.write_text("half")
        raise KeyError("a text that is secret")
    assert not partial.exists() and balance(ledger, "ana") == 0
    ((payload,),) = ledger.database.rows("select payload from entries where kind = 'aborted'")
    assert payload == '{"balances":0,"because":"KeyError"}'


def test_an_error_after_all_is_written_does_not_give_back(ledger, tmp_path):
    with pytest.raises(KeyError), ledger.begin({}, [tmp_path / ".out"]) as release:
        asked(release, "ana")
        write(release, tmp_path, "out")
        raise KeyError
    assert states(ledger) == ["written"] and balance(ledger, "ana") == NANO
    with Ledger.open(ledger.folder) as again:
        assert [one.now for one in again.recovered] == ["committed"]
    assert (tmp_path / "out").read_text() == "out" and not (tmp_path / ".out").exists()


def test_a_commit_that_was_interrupted_before_we_knew_it_is_not_given_back(ledger):
    with pytest.raises(KeyboardInterrupt), ledger.begin({}) as release:
        asked(release, "ana")
        release.spend()
        release.commit()
        release.state = "spent"  # as if Ctrl-C had come right after the transaction
        raise KeyboardInterrupt
    assert states(ledger) == ["committed"] and balance(ledger, "ana") == NANO


@pytest.mark.parametrize(
    ("state", "call"),
    [("open", "spend"), ("open", "commit"), ("reserved", "publish"), ("reserved", "written")],
)
def test_nothing_leaves_before_it_is_reserved_and_spent(ledger, state, call):
    with pytest.raises(RequestError, match=f"is {state}"), ledger.begin({}) as release:
        release.request(["ana"], np.ones(1)) if state == "open" else asked(release, "ana")
        release.written([]) if call == "written" else getattr(release, call)()
    assert states(ledger) == ["aborted"] and balance(ledger, "ana") == 0


def test_two_releases_never_write_one_file(ledger, tmp_path):
    """If two releases wrote one file, the recovery of one release would remove
    the file of the other."""
    partial = tmp_path / "p"
    with ledger.begin({}, [partial]) as first:
        with pytest.raises(
            RequestError, match=f"release {first.id}, which is open, writes this file too"
        ):
            ledger.begin({}, [partial])
        with pytest.raises(RequestError, match="writes this file too"), ledger.begin({}) as second:
            second.request(["ana"], np.ones(1))
            second.reserve(1.0, None, partials=[partial])
    assert states(ledger) == ["aborted", "aborted"] and balance(ledger, "ana") == 0
    with ledger.begin({}, [partial]):
        pass


@pytest.mark.parametrize(
    ("names", "final", "says"),
    [
        ("p", "folder", "is a folder"),
        ("q", "{}", "neither to begin nor to reserve"),  # else a crash would leave it behind
        ("", "", "cannot be published"),
    ],
)
def test_what_cannot_be_renamed_is_refused_and_stays_paid(ledger, tmp_path, names, final, says):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RequestError, match=says), ledger.begin({}, [tmp_path / ".p"]) as release:
        asked(release, "ana")
        write(release, tmp_path, *names, final=final)
        release.state = "spent"
        release.written([(tmp_path / ".p", tmp_path / "f", sha("p"))])  # is not there
    assert states(ledger)[-1] in ("failed", "written") and balance(ledger, "ana") == NANO


@pytest.mark.parametrize(
    ("subjects", "epsilon", "budget", "cap", "says"),
    [
        (["ana", ""], [1, 1], 1.0, None, "document 2 has no subject: its key is an empty text"),
        (["ana", None], [1, 1], 1.0, None, "document 2 has no subject: its key is not a text"),
        *(
            (["ana"], [epsilon], 1.0, None, "epsilon")
            for epsilon in (-1, float("nan"), float("inf"))
        ),
        (["ana"], [1, 1], 1.0, None, "epsilon"),
        (["ana"], [np.nextafter(0.5, 1.0)], 0.5, None, "more than its budget"),
        *(
            (["ana"], [1e-12], budget, None, "greater than 0")
            for budget in (0.0, float("nan"), 1e10)
        ),
        (["ana"], [1], 1.0, 0.0, "greater than 0"),
    ],
)
def test_wrong_requests(
    ledger,
    subjects,
    epsilon,
    budget,
    cap,
    says,
):
    with pytest.raises(RequestError, match=says), ledger.begin({}) as release:
        release.request(subjects, np.array(epsilon, dtype=float))
        release.reserve(budget, cap)
    assert states(ledger) == ["aborted"]


def test_more_than_the_ledger_holds_is_refused_and_not_wrapped_around(ledger):
    for n in (6, 20):
        with pytest.raises(RequestError, match="cannot hold"):
            spend(ledger, *["ana"] * n, budget=9e8)
    assert spend(ledger, *["ana"] * 4, budget=9e8, cap=9.5e8).n_withheld == 3


def test_keys_are_hmac_sha256_and_nowhere_in_clear(ledger):
    with ledger.begin({}) as release:
        asked(release, "a-secret-person", "Zoë \N{GRINNING FACE}", "\ud800")
        contents = b"".join(
            file.read_bytes() for file in ledger.folder.rglob("*") if file.is_file()
        )
        release.spend()
        release.commit()
    contents += (ledger.folder / "ledger.sqlite").read_bytes()
    assert b"secret-person" not in contents
    salt = (ledger.folder / "salt").read_bytes()
    assert salt not in (ledger.folder / "ledger.sqlite").read_bytes()
    assert (
        ledger.hasher.one("a-secret-person")
        == hmac.digest(salt, b"a-secret-person", hashlib.sha256)[:16]
    )


def test_plain_keys_are_kept(folder):
    with Ledger.open(folder, "plain") as ledger:
        spend(ledger, "ana", "ben", "ana")
        with pytest.raises(ZeroDivisionError), ledger.begin({}) as release:
            asked(release, "zoe")
            raise ZeroDivisionError  # who has spent nothing is forgotten
        assert sorted(ledger.database.rows("select key from names")) == [("ana",), ("ben",)]
        with pytest.raises(RequestError, match="not valid Unicode"), ledger.begin({}) as release:
            asked(release, "\ud800")
    with pytest.raises(
        RequestError,
        match=r"was created with plain keys, but lexveil\.toml: ledger\.keys is hashed",
    ):
        Ledger.open(folder, "hashed")


def test_a_salt_of_its_own_that_only_the_owner_can_read(folder, tmp_path):
    with Ledger.open(folder) as one, Ledger.open(tmp_path / "other") as other:
        assert one.hasher.one("ana") != other.hasher.one("ana")
    assert (folder / ".gitignore").read_text() == "*\n"
    for name in ("salt", "ledger.sqlite"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
