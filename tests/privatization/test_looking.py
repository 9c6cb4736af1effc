"""`lexveil inspect` and `privatize --preview`: what a release would do, and rows to look at;
nothing is left of it."""

import io
import json
import logging
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from asking import preview, privatize_file
from rich.console import Console

from lexveil.api import inspect
from lexveil.faces.cli.preview import show_preview
from lexveil.io.execution.stage import Progress
from lexveil.release.looking.inspect import as_text

HOW = {"mechanism": "madlib", "strategy": "S3", "epsilon": 20.0}
TEXTS = [
    "The Government said: yes, Zorblax!",
    "",
    "Fire services in New South Wales  said no, Zorblax.",
]


@pytest.fixture
def source(project, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text(
        "".join(
            json.dumps({"text": text, "who": f"p{i % 2}"}) + "\n" for i, text in enumerate(TEXTS)
        )
    )
    return file


def test_looking_leaves_nothing(source, tmp_path):
    shutil.rmtree(".lexveil", ignore_errors=True)
    inspect(source, subject_column="who", **HOW)
    assert {file.name for file in tmp_path.iterdir()} == {"in.jsonl", "project"}
    assert not Path(".lexveil").exists()


@pytest.fixture
def foretold(source):
    """The numbers that are foretold of a release."""
    return dict(inspect(source, subject_column="who", **HOW).to_dict())


@pytest.fixture
def released(source, tmp_path):
    """The release."""
    return privatize_file(source, tmp_path / "out.jsonl", **HOW)


def test_it_foretells_what_a_release_counts(foretold, released):
    counts = released.operator.to_dict()["counts"]
    n_tokens = counts["n_tokens_in"]
    assert foretold["by_class"] == counts["by_class"]
    assert foretold["tried"]["tokens"] == n_tokens
    expected = {"rows": 3, "subjects": 2, "tokens": n_tokens}
    assert {name: foretold[name] for name in expected} == expected


def test_coverage_is_the_share_of_words_that_a_release_knows(foretold, released):
    by_class = released.operator.to_dict()["counts"]["by_class"]
    words = sum(sum(by_class[kind].values()) for kind in ("word", "stopword", "oov"))
    assert foretold["coverage"] == pytest.approx(1 - by_class["oov"]["sampled"] / words)


def test_it_foretells_the_epsilon_that_a_release_spends(foretold, released, tmp_path):
    budget = foretold["budget"]
    assert budget["document_budget"] == released.record.to_dict()["document_budget"]["input"]
    epsilons = pq.read_table(tmp_path / "out.jsonl.tokens.parquet")["epsilon"].to_numpy()
    spent = epsilons[epsilons > 0]
    expected = {"least": spent.min(), "most": spent.max(), "mean": spent.mean()}
    per_token = budget["epsilon_per_token"]
    assert {name: per_token[name] for name in expected} == pytest.approx(expected)


UNEVEN = {
    "mechanism": "tem",
    "strategy": "S1",
    "epsilon": 40.0,
    "average_words": 100.0,
    "seed": 1,
}


@pytest.fixture
def uneven(built, tmp_path):
    """A file of 30 short texts and a long one."""
    short = "The government said no to fire services."
    long = "The police said that the government was there. " * 300
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in [short] * 30 + [long]))
    return file


def test_one_long_text_hides_no_short_ones(uneven):
    """Most tokens are changed, and yet most texts stay as they are."""
    tried = inspect(uneven, **UNEVEN).tried
    assert tried.share_changed > 0.5
    assert tried.documents.documents == 31
    assert tried.documents.nearly_verbatim >= 20
    assert tried.documents.median_unchanged > 0.9
    assert tried.documents.worst_tenth_unchanged > 0.9


def test_the_budget_of_texts_tells_which_are_capped(uneven):
    budget = inspect(uneven, **UNEVEN).budget
    assert (budget.capped_documents, budget.median_words) == (30, 7)


def test_texts_that_stay_as_they_are_cause_an_advice(uneven):
    found = inspect(uneven, **UNEVEN)
    lines = as_text(found)
    assert str(found) == "\n".join(lines)
    (advice,) = (line for line in lines if "a tenth of the texts keep" in line)
    assert "a stronger protection, or a smaller" in advice
    assert not any("the middle text has" in line for line in lines)  # its length was given


def test_texts_that_change_cause_no_advice(uneven):
    assert inspect(uneven, **HOW | {"epsilon": 0.01}).tried.documents.caution() is None


def test_what_becomes_of_texts_is_foretold_as_it_comes_out(uneven, tmp_path):
    done = privatize_file(uneven, tmp_path / "out.jsonl", **UNEVEN)
    assert done.operator.documents == inspect(uneven, **UNEVEN).tried.documents


def test_words_are_shown_only_on_request(source):
    silent = inspect(source, **HOW)
    assert silent.examples is None
    assert (
        "zorblax" not in "\n".join(as_text(silent)).lower() + json.dumps(silent.to_dict()).lower()
    )
    shown = inspect(source, show_examples=True, **HOW)
    assert ("zorblax", 2) in shown.examples["unknown"]
    assert "zorblax (2)" in "\n".join(as_text(shown))
    assert shown.examples["unprotected"][0][0] in {",", "."}


OPTIONS = ("--mechanism", "madlib", "--strategy", "S3", "--epsilon", "20")
CANARY = "zanzibarix"
ROWS = [
    {"title": "Fire services", "body": f"The Prime Minister said no, {CANARY}."},
    {"title": None, "body": ""},
    {"title": None, "body": None},
    {"title": "New South Wales", "body": "yes: \x1b[31mred\x1b[0m \u202eyes"},
    {"title": "last", "body": "last"},
]


@pytest.fixture
def titled(ready, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def outputs(found):
    return [{column: changes.output for column, changes in row.texts.items()} for row in found.rows]


@pytest.mark.parametrize(
    "more", [{}, {"consistent": True, "keep_layout": True, "max_token_epsilon": "none"}]
)
def test_it_is_the_experiment_of_the_same_seed(titled, tmp_path, more):
    how = {**HOW, **more, "text_column": ("body", "title")}
    found = preview(titled, 4, **how)
    privatize_file(titled, tmp_path / "out.jsonl", mode="experiment", **how)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()][:4]
    assert outputs(found) == [
        {column: text for column, text in row.items() if text is not None} for row in rows
    ]
    assert [row.row for row in found.rows] == [1, 2, 3, 4] and found.seed == 20261
    assert found.rows[0].texts["title"].source == "Fire services"
    assert outputs(preview(titled, 4, seed=5, **how)) != outputs(found)


def contents(root):
    """Return the contents of every file, including those of the ledger."""
    return {
        str(file): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def test_nothing_is_written_charged_or_logged(titled, tmp_path, cli, caplog):
    caplog.set_level(logging.DEBUG)
    before = contents(tmp_path)
    assert any("ledger" in name for name in before)
    said = cli("privatize", titled, "--preview", "2", *OPTIONS, "--text-column", "body", "--json")
    assert contents(tmp_path) == before
    found = json.loads(said.out)
    assert CANARY in found["rows"][0]["texts"][0]["source"] and found["mode"] == "experiment"
    assert {"fate": "random", "source": [28, 38]}.items() <= found["rows"][0]["texts"][0]["tokens"][
        -2
    ].items()
    assert CANARY not in said.err + caplog.text and CANARY not in repr(
        preview(titled, 1, text_column="body", **HOW)
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "on a terminal only, but --json"),
        (["-o", "out.jsonl", "--json"], "--preview writes nothing"),
        (["--mode", "release", "--json"], "remove --mode release"),
        (["--average-words", "data", "--json"], "needs all rows"),
    ],
)
def test_refused(titled, cli, more, why):
    """Standard output of a test is no terminal."""
    command = ("privatize", titled, "--preview", "2", *OPTIONS, "--text-column", "body", *more)
    assert why in cli(*command, code=2, told=r"(using the model.*\n)?").err


def test_a_text_cannot_drive_the_terminal(titled):
    stream = io.StringIO()
    console = Console(
        file=stream, highlight=False, force_terminal=True, width=120, color_system=None
    )
    show_preview(preview(titled, 4, text_column=("body", "title"), **HOW), console)
    plain = stream.getvalue()
    assert f"{{{CANARY}}}" in plain  # in brackets where there are no styles
    assert "\x1b" not in plain and "\u202e" not in plain and "�" in plain


def test_its_progress_never_passes_the_whole(built, tmp_path, monkeypatch):
    """The progress is right also if only the first rows of a chunk are tried."""
    made = []

    def progress(label, total, unit, watch):
        del watch
        made.append(Progress(label, total, unit, watch=lambda *_: None))
        return made[-1]

    monkeypatch.setattr("lexveil.release.run.Progress", progress)
    monkeypatch.setattr("lexveil.release.looking.inspect.TRIED", 12)
    file = tmp_path / "in.txt"
    file.write_text("The government said no.\n" * 40)
    inspect(file, **HOW)
    (tried,) = [one for one in made if one.label == "try"]
    assert 0 < tried.done <= tried.total == 40
