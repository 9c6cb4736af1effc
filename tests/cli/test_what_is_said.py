"""The words of a command about its work: what may be published, what stays secret, whose budget is
left, and what to do where something is refused.
"""

import json

import pytest

TICKETS = "customer,title,body\nana,broken parcel,{}\nben,late again,{}\n"
LONG = "The parcel arrived broken and the agent never answered my second letter. " * 3
SHORT = "The agent answered."


@pytest.fixture
def tickets(outside):
    (outside / "in.csv").write_text(TICKETS.format(LONG, SHORT))
    return outside


def privatize(cli, *options, out="out.csv", code=0):
    named = ["--text-column", "body", "--subject-column", "customer", "--model", "en"]
    return cli("privatize", "in.csv", "-o", out, *named, *options, code=code)


def test_a_release_is_to_be_published(tickets, cli):
    assert "publish together: out.csv," in privatize(cli).out


def test_an_experiment_is_not_to_be_published(tickets, cli):
    said = privatize(cli, "--seed", "1").out
    assert "do not publish the output, because nothing is guaranteed: out.csv," in said
    assert "publish together" not in said


def test_a_heading_stands_above_something(tickets, cli):
    """An experiment with sentences has no message for the operator alone, so it has no heading for
    such messages."""
    said = privatize(cli, "--strategy", "S5", "--seed", "1").out
    assert "private to the operator" not in said


def test_who_releases_texts_again_is_told_that_outputs_add_up(tickets, cli):
    told = "two outputs of a text"
    first = privatize(cli)
    second = privatize(cli, out="again.csv")
    assert told not in first.out + first.err
    assert told in second.out and told in second.err
    assert told not in (tickets / "again.csv.statement.txt").read_text()


def test_rows_that_are_too_long_are_explained(tickets, cli):
    cli("ledger", "cap", "45", "--because", "a test")
    said = privatize(cli).out
    assert "1 of 2 rows are withheld and not charged, because 1 subjects have less left" in said
    assert "of their cap of 45 epsilon" in said
    assert "A row of more than 10 perturbed tokens costs more than the whole cap" in said
    assert "out.csv.withheld.csv" in said


def test_a_release_of_nothing_says_how_long_rows_may_be(tickets, cli):
    cli("ledger", "cap", "4.5", "--because", "a test")
    assert "(which is enough for a row of 1 perturbed tokens)" in privatize(cli, code=1).err


def test_the_first_release_says_how_long_rows_may_be(tickets, cli):
    assert "a row of more than 1,407 perturbed tokens is withheld" in privatize(cli).err


def test_a_cap_that_is_set_is_confirmed(tickets, cli):
    said = cli("ledger", "cap", "45", "--because", "a test").err
    assert "the ledger's cap is 45 epsilon per subject from now on" in said
    assert "unlimited" in cli("ledger", "cap", "unlimited", "--because", "a test").err


def test_a_command_that_is_shown_leaves_no_text_as_it_is(tickets, cli):
    for verb in (["inspect", "in.csv"], ["privatize", "in.csv", "-o", "out.csv"]):
        said = cli(*verb, "--model", "en", code=2, told="").err
        assert "--text-column title --text-column body" in said and "rewrites all of them" in said


def test_the_texts_of_a_row_have_one_budget(tickets, cli):
    columns = ["--text-column", "title", "--epsilon", "1", "--mechanism", "tem"]
    said = privatize(cli, *columns).out
    assert "4 texts," in said and "budget of each row: " in said


def inspect(cli, *options):
    named = ["--text-column", "body", "--subject-column", "customer", "--model", "en"]
    return str(cli("inspect", "in.csv", *named, *options).out)


def test_an_inspection_says_what_a_release_costs_each_subject(tickets, cli):
    """24 words of the long text are replaced, and 2 of the short one; each at 4.45."""
    said = inspect(cli)
    assert "a release costs a subject 106.8 epsilon at most, the middle one 57.85" in said
    assert "6262.54 or more of the cap is left for each" in said
    assert "enough for 58 such releases" in said
    assert not (tickets.parent / "home" / "ledger").exists()


def test_an_inspection_says_what_a_purpose_hides_less(tickets, cli):
    public, _, _ = inspect(cli, "--purpose", "sentiment").partition("private to the operator")
    assert "\nLess hidden, by the purpose sentiment=1: of 100 words " in public


def test_an_inspection_says_what_the_ledger_has_left(tickets, cli):
    cli("ledger", "cap", "300", "--because", "a test")
    privatize(cli)
    said = inspect(cli)
    assert "193.2 or more of the cap is left for each, enough for 1 such release;" in said
    assert "2 of 2 subjects were charged before" in said


def test_an_inspection_says_for_whom_too_little_is_left(tickets, cli):
    cli("ledger", "cap", "50", "--because", "a test")
    assert "CAUTION: to 1 of 2 subjects less is left than a release costs" in inspect(cli)


def test_an_inspection_foretells_the_charges(tickets, cli):
    found = json.loads(inspect(cli, "--json"))["spending"]
    privatize(cli)
    charged = json.loads((tickets / "out.csv.operator.json").read_text())["ledger"]
    assert found["largest"] == charged["largest_balance"]
    assert 2 * found["median"] == pytest.approx(charged["epsilon_charged"])


def test_an_inspection_of_an_experiment_costs_nobody_anything(tickets, cli):
    assert "spending" not in json.loads(inspect(cli, "--seed", "1", "--json"))


def test_a_ledger_that_cannot_be_read_is_told_of(tickets, cli):
    privatize(cli)
    salt = tickets.parent / "home" / "ledger" / "salt"
    salt.write_bytes(bytes(32))
    named = ["--text-column", "body", "--subject-column", "customer", "--model", "en"]
    said = cli("inspect", "in.csv", *named)
    assert "the spending of the subjects is not known" in said.err
    assert "a release costs a subject 106.8 epsilon at most" in said.out
