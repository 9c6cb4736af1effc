"""LEXVEIL_HIDE_COLUMNS: no message names a column, where names of columns are sensitive
themselves."""

import pandas as pd
import pytest

import lexveil
from lexveil.io.formats.messages import is_of_persons

HEADER = "hiv_status,therapist_notes\n"
HOW = ["--mechanism", "tem", "--strategy", "S1", "--epsilon", "5", "--seed", "1", "--model", "toy"]


@pytest.mark.parametrize("hides", [False, True])
def test_a_missing_column_is_said_without_names(hides, outside, monkeypatch, cli):
    if hides:
        monkeypatch.setenv("LEXVEIL_HIDE_COLUMNS", "1")
    (outside / "in.csv").write_text(
        HEADER + "positive,The police said that all was well today .\n", encoding="utf-8"
    )
    frame = pd.read_csv(outside / "in.csv")
    commands = {"inspect": ["--show-examples"], "privatize": ["-o", "out.csv"]}
    for command, more in commands.items():
        said = cli(command, "in.csv", *more, *HOW, "--text-column", "hiv_note", code=2).err
        assert "no column (hidden) among its 2" in said or not hides
        assert hides not in ("hiv_" in said, "therapist" in said)
    with pytest.raises(lexveil.RequestError, match="is not one of the columns") as missing:
        lexveil.privatize(frame, column="hiv_note", model="toy")
    assert ("hiv_" in str(missing.value)) != hides
    # What names the column that was found says that there is one.
    said = cli("privatize", "in.csv", "-o", "out.csv", *HOW).err
    assert ("`therapist_notes`" in said) != hides and "the texts are in column" in said
    assert (
        "published unchanged, with any names in them: `hiv_status`;" in said
    ) != hides and "unchanged" in said


def test_cells_of_a_first_row_are_no_names(outside, cli):
    rows = (
        "Meier,Anna Client,zanzibar fire\nHuber,Eva Schmid,The police said that all was "
        "well today .\n"
    )
    (outside / "in.csv").write_text(rows, encoding="utf-8")
    asked = cli("privatize", "in.csv", "-o", "out.csv", *HOW, code=2).err
    assert "2 columns could contain texts: no. 1, no. 3 (" in asked
    named = ["--text-column", "zanzibar fire"]
    said = cli("privatize", "in.csv", "-o", "out.csv", *named, *HOW).err
    assert "published unchanged, with any names in them: no. 1, no. 2 (" in said
    assert not any(word in asked + said for word in ("Meier", "Client", "zanzibar"))


def test_columns_whose_names_let_expect_persons():
    persons = ["customer", "customer_name", "userId", "USERS", "e-mail", "Patient no", "client2"]
    assert (
        list(
            filter(
                is_of_persons,
                [*persons, "id", "subject", "priority", "product_name", "used", "emailed"],
            )
        )
        == persons
    )
