"""The command `lexveil lineage` of a file of sentences of a bank."""

from pathlib import Path

import pytest

from lexveil.faces.cli.main import main
from lexveil.io.artifacts.default_bank import written_bank
from lexveil.io.artifacts.model import Model
from tests.privatization.sentence_banks import build_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(autouse=True)
def _here(outside):
    Path("in.csv").write_text("text\nThe food was cold.\n")


def released(*options):
    how = ("--strategy", "S5", "--epsilon", "5", "--model", "en+sentiment=3")
    assert main(["privatize", "in.csv", "-o", "out.csv", *how, *map(str, options)]) == 0


def said_of_the_bank(cli, *options):
    lines = cli("lineage", "out.csv", *options).out.splitlines()
    return next(line for line in lines if "bank/bank.json" in line)


def test_the_bank_that_ships_is_found(cli):
    released()
    card = written_bank(Model.load(name="en")) / "bank.json"
    assert said_of_the_bank(cli).endswith(f": {card}")


def test_all_of_it_can_be_verified(cli):
    released()
    assert "not compared" not in cli("lineage", "out.csv", "--verify").out


def test_of_another_bank_the_hash_is_shown(cli, bank):
    released("--bank", bank)
    assert "a record does not state the place of the bank" in said_of_the_bank(cli)


def test_a_bank_that_changed_since_is_not_taken_for_it(cli):
    released()
    card = written_bank(Model.load(name="en")) / "bank.json"
    card.write_bytes(card.read_bytes() + b" ")
    assert "a record does not state the place of the bank" in said_of_the_bank(cli)
