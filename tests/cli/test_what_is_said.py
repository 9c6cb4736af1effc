"""What a command says of what it did: what may be published, what stays secret, whose budget is
left, and what to do where something is refused.
"""

from pathlib import Path
from typing import Any

import pytest

TICKETS = "customer,title,body\nana,broken parcel,{}\nben,late again,{}\n"
LONG = "The parcel arrived broken and the agent never answered my second letter. " * 3
SHORT = "The agent answered."


@pytest.fixture
def tickets(outside: Path) -> Path:
    (outside / "in.csv").write_text(TICKETS.format(LONG, SHORT))
    return outside


def privatize(cli: Any, *options: str, out: str = "out.csv", code: int = 0) -> Any:
    named = ["--text-column", "body", "--subject-column", "customer", "--model", "en"]
    return cli("privatize", "in.csv", "-o", out, *named, *options, code=code)


def test_a_release_is_to_be_published(tickets: Path, cli: Any) -> None:
    assert "to be published, together: out.csv," in privatize(cli).out


def test_an_experiment_is_not_to_be_published(tickets: Path, cli: Any) -> None:
    said = privatize(cli, "--seed", "1").out
    assert "not to be published, since nothing is guaranteed: out.csv," in said
    assert "to be published, together" not in said


def test_a_heading_stands_above_something(tickets: Path, cli: Any) -> None:
    """Of sentences in an experiment nothing is told to the operator alone."""
    said = privatize(cli, "--strategy", "S5", "--seed", "1").out
    assert "private to the operator" not in said


def test_who_releases_texts_again_is_told_that_outputs_add_up(tickets: Path, cli: Any) -> None:
    told = "two outputs of a text tell more of it than one"
    first = privatize(cli)
    second = privatize(cli, out="again.csv")
    assert told not in first.out + first.err
    assert told in second.out and told in second.err
    assert told not in (tickets / "again.csv.statement.txt").read_text()


def test_rows_that_are_too_long_are_explained(tickets: Path, cli: Any) -> None:
    cli("ledger", "cap", "45", "--because", "a test")
    said = privatize(cli).out
    assert "1 of 2 rows are withheld and not charged, because what is left of the cap of 45" in said
    assert "A row of more than 10 perturbed tokens costs more than the whole cap" in said
    assert "out.csv.withheld.csv" in said


def test_a_release_of_nothing_says_how_long_rows_may_be(tickets: Path, cli: Any) -> None:
    cli("ledger", "cap", "4.5", "--because", "a test")
    assert "(enough for a row of 1 perturbed tokens)" in privatize(cli, code=1).err


def test_the_first_release_says_how_long_rows_may_be(tickets: Path, cli: Any) -> None:
    assert "a row of more than 1,407 perturbed tokens is withheld" in privatize(cli).err


def test_a_cap_that_is_set_is_confirmed(tickets: Path, cli: Any) -> None:
    said = cli("ledger", "cap", "45", "--because", "a test").err
    assert "the ledger's cap is 45 epsilon of one subject from now on" in said
    assert "unlimited" in cli("ledger", "cap", "unlimited", "--because", "a test").err


def test_a_command_that_is_shown_leaves_no_text_as_it_is(tickets: Path, cli: Any) -> None:
    for verb in (["inspect", "in.csv"], ["privatize", "in.csv", "-o", "out.csv"]):
        said = cli(*verb, "--model", "en", code=2, told="").err
        assert "--text-column title --text-column body" in said and "rewrites all of them" in said


def test_the_texts_of_a_row_have_one_budget(tickets: Path, cli: Any) -> None:
    columns = ["--text-column", "title", "--epsilon", "1", "--mechanism", "tem"]
    said = privatize(cli, *columns).out
    assert "4 texts," in said and "budget of each row: " in said
