"""`lexveil privatize`: every form in and out, nothing half-written, no seed in a release."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from bad_inputs import lines

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.budgets import Policy
from lexveil.faces.cli.main import main
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.release.engine.plan import count_tokens

TEXTS = ["The Government said: yes, Zorblax!", "", "Fire services in New South Wales  said no."]
HOW = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}


def jsonl(folder):
    file = folder / "in.jsonl"
    file.write_bytes(
        lines(*({"z": i, "text": text, "a": [i, None]} for i, text in enumerate(TEXTS)))
    )
    return file


def test_the_record_names_output_and_ledger_and_never_the_source(built, tmp_path):
    source = jsonl(tmp_path)
    privatize_file(source, tmp_path / "out.jsonl", **HOW)
    recorded = (tmp_path / "out.jsonl.record.json").read_text()
    assert json.loads(recorded)["output"] == {"sha256": sha256(tmp_path / "out.jsonl")}
    operator = (tmp_path / "out.jsonl.operator.json").read_text()
    assert json.loads(operator)["output"] == {
        "tokens_sha256": sha256(tmp_path / "out.jsonl.tokens.parquet")
    }
    assert sha256(source) not in recorded + operator
    assert {file.name for file in tmp_path.iterdir()} == {
        "in.jsonl",
        "out.jsonl",
        "out.jsonl.record.json",
        "out.jsonl.statement.txt",
        "out.jsonl.operator.json",
        "out.jsonl.tokens.parquet",
    }
    for ending in ("operator.json", "tokens.parquet"):
        # nobody else may read it
        assert (tmp_path / f"out.jsonl.{ending}").stat().st_mode & 0o077 == 0


def test_the_budget_is_a_public_number_whatever_the_texts(built, tmp_path):
    """A base epsilon becomes a budget by the corpus's words per document, or by a number that is
    given."""
    length = json.loads(Path("artifacts/corpus/length.json").read_text(encoding="utf-8"))
    corpus = pq.read_table("artifacts/corpus/sample.parquet").column("text").to_pylist()
    counts = count_tokens(
        corpus, load_lexicon("word", Path(), "en"), Policy("keep", "keep", "keep")
    )
    assert length == {"n_documents": len(corpus), "n_words": int(counts[0].sum())}
    for more, average in (
        ({}, length["n_words"] / length["n_documents"]),
        ({"average_words": 7.5}, 7.5),
    ):
        record = privatize_file(
            jsonl(tmp_path), tmp_path / f"{average}.jsonl", **HOW | {"epsilon": 2.0}, **more
        ).record
        assert (
            record.document_budget == {"input": 2.0 * average}
            and record.spent.max_token_epsilon <= 4.0
        )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"average_words": "data"}, "depends on private texts"),
        ({"max_token_epsilon": "none"}, "stay unchanged"),
    ],
)
def test_what_depends_on_private_texts_is_for_experiments(built, tmp_path, more, said):
    how = {"mechanism": "madlib", "strategy": "S3", "epsilon": 2.0}
    with pytest.raises(RequestError, match=said):
        privatize_file(jsonl(tmp_path), tmp_path / "out.jsonl", **how, **more)
    privatize_file(jsonl(tmp_path), tmp_path / "out.jsonl", mode="experiment", **how, **more)


@pytest.mark.parametrize(
    ("name", "target", "named"),
    [
        ("in.csv", "out.csv", "out.no-guarantee.csv"),
        ("in.csv", "out.no-guarantee.csv", "out.no-guarantee.csv"),
        ("in.csv.gz", "the.out.csv.gz", "the.out.no-guarantee.csv.gz"),
        ("folder", "out", "out.no-guarantee"),
    ],
)
def test_without_a_guarantee_nothing_is_released_unless_its_name_says_so(
    project, tmp_path, name, target, named
):
    source = tmp_path / name
    rows = b"text\nthe government said\n"
    file = source / "in.csv" if name == "folder" else source
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(gzip.compress(rows) if name.endswith(".gz") else rows)
    params = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(
        params.replace("exclude_input: false", "exclude_input: true")
    )
    how = {"mechanism": "vickrey", "strategy": "S1", "document_budget": 4.0}
    before = sorted(tmp_path.rglob("*"))
    for unproven in (how, {"mechanism": "none", "strategy": "none"}):
        with pytest.raises(RequestError, match="no guarantee can be given"):
            privatize_file(source, tmp_path / target, **unproven)
    assert (
        sorted(tmp_path.rglob("*")) == before and not Path(".lexveil/ledger/ledger.sqlite").exists()
    )
    done = privatize_file(source, tmp_path / target, without_guarantee=True, **how)
    assert done.target == tmp_path / named and done.target.exists()
    assert done.record.without_guarantee and done.record.guarantee.formula == "none"
    assert json.loads((tmp_path / f"{named}.record.json").read_text())["without_guarantee"] is True
    # What has a guarantee, and an experiment, keep their names.
    for number, more in enumerate(({"mechanism": "madlib"}, {"mode": "experiment"})):
        fine = tmp_path / f"fine-{number}-{target}"
        done = privatize_file(source, fine, **how | more, without_guarantee=True)
        assert done.target == fine and done.record.without_guarantee is None


def test_words_that_did_not_pass_a_check_are_not_released_with(project, tmp_path):
    """A check that fails removes its record."""
    (project / "artifacts" / "checks" / "coverage.json").unlink()
    with pytest.raises(LexveilError, match=r"checks/coverage\.json .*check_vocab"):
        privatize_file(jsonl(tmp_path), tmp_path / "out.jsonl", **HOW)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_release_that_withholds_all_rows_ends_with_1(ready, capsys):
    """The message gives the number of charged subjects: first two of three, because one has no
    words; then none, twice.
    """
    rows = [
        {"text": text, "who": who}
        for who, text in (("ana", "no fire"), ("ben", "police"), ("cem", ""))
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [
        "privatize",
        "in.jsonl",
        "--mechanism",
        "tem",
        "--strategy",
        "S1",
        "--document-budget",
        "5",
    ]
    command += ["--subject-column", "who", "--max-token-epsilon", "5"]
    assert main(["ledger", "cap", "5", "--because", "a test"]) == 0
    assert main([*command, "-o", "first.jsonl"]) == 0
    assert "charged to 2 subjects" in capsys.readouterr().out
    assert main([*command, "-o", "second.jsonl"]) == 0  # cem's row goes out: it costs nothing
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    assert main([*command, "-o", "third.jsonl"]) == 1
    shown = capsys.readouterr()
    assert "all rows are withheld" in shown.err and "charged to 0 subjects" in shown.out
    assert not Path("third.jsonl").read_bytes()
