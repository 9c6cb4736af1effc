"""The cap of a subject that an inspection shows."""

import pytest

from lexveil.release.ledger.ledger import Ledger


@pytest.fixture
def source(outside):
    file = outside / "a.txt"
    file.write_text("The fire burned for days.\n", encoding="utf-8")
    return file


def lifetime_cap(cli, source):
    """Return what `lexveil inspect` prints, and its line about the cap."""
    shown = cli("inspect", source, "--model", "toy", "--mechanism", "tem", "--epsilon", "1")
    (line,) = [line for line in shown.out.splitlines() if line.startswith("lifetime cap")]
    return shown, line


def test_it_is_that_of_the_ledger(outside, source, cli):
    assert "none yet; the first release fixes " in lifetime_cap(cli, source)[1]
    home = outside.parent / "home"
    with Ledger.open(home / "ledger", anchor=home / "ledger-anchor.json") as ledger:
        ledger.set_cap(1234.5, "of the test")
    assert lifetime_cap(cli, source)[1] == "lifetime cap of a subject: 1234.5"


def test_a_ledger_that_cannot_be_read_keeps_nobody_from_looking(outside, source, cli):
    ledger = outside.parent / "home/ledger"
    ledger.mkdir()
    (ledger / "ledger.sqlite").write_bytes(b"not a ledger")
    shown, line = lifetime_cap(cli, source)
    assert "the ledger's cap is not known: " in shown.err and "none yet" in line
