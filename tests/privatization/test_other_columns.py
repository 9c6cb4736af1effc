"""Columns that go out as they are: a release asks which columns are texts where several could be,
and the record names those of which nothing is guaranteed."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import lexveil

TEXT = "The fire was under control."
HOW = {"model": "toy", "mechanism": "tem", "strategy": "S1", "document_budget": 60}
OPTIONS = ["--model", "toy", "--mechanism", "tem", "--strategy", "S1", "--document-budget", "60"]


def recorded(folder, out):
    return json.loads((folder / f"{out}.record.json").read_text())


@pytest.mark.parametrize("verb", ["privatize", "inspect", "preview"])
def test_several_possible_columns_are_refused_with_the_command(outside, cli, verb):
    (outside / "in.csv").write_text(f"id,review,note\n1,{TEXT},secretzorblax\n")
    asked = {
        "privatize": ["privatize", "in.csv", "-o", "out.csv", *OPTIONS],
        "inspect": ["inspect", "in.csv", *OPTIONS],
        "preview": ["privatize", "in.csv", "--preview", "1", "--json", *OPTIONS],
    }[verb]
    err = cli(*asked, code=2).err
    assert "`review`, `note`" in err and "--text-column review" in err
    assert f"`lexveil {asked[0]} in.csv" in err and "zorblax" not in err
    assert [path.name for path in outside.iterdir()] == ["in.csv"]
    assert not (outside.parent / "home" / "ledger").exists()


def test_the_record_names_the_columns_that_are_not_covered(outside, cli):
    (outside / "in.csv").write_text(f"id,review,note\n1,{TEXT},{TEXT}\n")
    out = cli("privatize", "in.csv", "-o", "a.csv", "--text-column", "review", *OPTIONS).out
    assert "nothing is guaranteed for the 2 other columns, which were copied unchanged" in out
    assert recorded(outside, "a.csv")["other_columns"] == ["id", "note"]
    both = ["--text-column", "review", "--text-column", "note"]
    cli("privatize", "in.csv", "-o", "b.csv", *both, *OPTIONS)
    assert recorded(outside, "b.csv")["other_columns"] == ["id"]
    (outside / "in.txt").write_text(f"{TEXT}\n")
    out = cli("privatize", "in.txt", "-o", "out.txt", *OPTIONS).out
    assert "other columns" not in out and recorded(outside, "out.txt")["other_columns"] == []


def test_spans_are_emptied_and_so_no_other_column(outside, cli):
    (outside / "in.jsonl").write_text(json.dumps({"id": 1, "text": TEXT, "found": []}) + "\n")
    cli("privatize", "in.jsonl", "-o", "out.jsonl", "--spans", "found", *OPTIONS)
    assert recorded(outside, "out.jsonl")["other_columns"] == ["id"]


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_tables_in_memory_say_it_too(outside, make):
    table = make({"id": [1], "review": [TEXT], "note": [TEXT]})
    done = lexveil.privatize(table, column="review", **HOW)
    assert done.record.other_columns == ["id", "note"]
    assert lexveil.privatize([TEXT], **HOW).record.other_columns is None
