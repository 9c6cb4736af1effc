"""The page as a whole, and the files beside it, of a small set of artifacts; and of other grids."""

import csv
import json
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from examples.replication.__main__ import main as replication
from examples.replication.preset import REQUEST, ReplicationRequest
from lexveil.base.errors import CheckFailedError, MissingArtifactError
from lexveil.base.levels import BaseEpsilon
from lexveil.io.execution.stage import stage_main
from lexveil.lab.report import formatting
from tasks import report
from tests.report import artifacts
from tests.report.artifacts import SECRET, STATIC, change, put, put_run, reported

EXPECTED = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("table", "start", "cells"), EXPECTED["cells"])
def test_tables_hold_what_the_artifacts_say(page, table, start, cells):
    assert page.row(table, *start) == cells


@pytest.mark.parametrize("words", EXPECTED["phrases"])
def test_the_page_says(page, words):
    assert words in page.text


def test_nothing_is_fetched_and_no_document_shown(made, page):
    assert page.links and all(
        link.startswith(("#", "data:", "../data_docs/index.html")) for link in page.links
    )
    assert not re.search(r"https?:|@import|<script[^>]+src|<iframe|<object|url\(", page.html)
    files = sorted((made / "artifacts/report").iterdir())
    assert [file.name for file in files] == ["index.html", "pmi.csv", "recovery.csv", "runs.csv"]
    assert not any(SECRET in file.read_text(encoding="utf-8") for file in files)
    assert "memory_limit" not in page.text  # of this machine: changes no result


def test_ids_are_unique_and_every_reference_has_one(page):
    references = re.findall(r'href="#([\w-]+)"|aria-labelledby="([\w-]+) ?([\w-]*)"', page.html)
    assert len(page.ids) == len(set(page.ids)) and references
    assert {name for names in references for name in names if name} <= set(page.ids)


def test_figures_are_labelled_and_have_their_numbers_as_csv(page):
    figures = re.findall(r'<figure class="chart">.*?</figure>', page.html, flags=re.DOTALL)
    found = {}
    for figure in figures:
        ((uri, name),) = re.findall(
            r'href="data:text/csv;charset=utf-8,([^"]*)" download="([^"]*)\.csv"', figure
        )
        root = ElementTree.fromstring(
            re.findall(r"<svg[^>]*role.*?</svg>", figure, flags=re.DOTALL)[0]
        )
        labels = [part.get("id") for part in root if part.tag in ("title", "desc")]
        assert labels == root.attrib["aria-labelledby"].split()
        found[name] = unquote(uri).splitlines()
        assert len(found[name]) == 1 + len(root.findall(".//g/g")) or name in (
            "ranks",
            "answer-1",
            "tradeoff-1-madlib",
        )
    assert {
        name: found[name][: len(lines)] for name, lines in EXPECTED["charts"].items()
    } == EXPECTED["charts"]
    assert found.keys() == EXPECTED["charts"].keys()
    # The standard error of 0.5 in 100 documents and trainings that differ by 0.0625 is √(0.0625² +
    # 0.25/100).
    *point, low, high = found["utility-1-madlib"][1].split(",")
    assert point == ["S1", "1.0", "0.5"] and float(high) - float(low) == pytest.approx(
        2 * np.hypot(0.0625, 0.05)
    )


def test_figures_and_files_for_other_tools(made):
    figures = {
        file.stem: json.loads(file.read_text()) for file in (made / "artifacts/runs").iterdir()
    }
    assert {name: figures[name] for name in EXPECTED["runs"]} == EXPECTED["runs"]
    for name, lines in EXPECTED["files"].items():
        assert set(lines) <= set(
            (made / "artifacts/report" / name).read_text(encoding="utf-8").splitlines()
        )


def test_same_artifacts_give_the_same_bytes(made, changed):
    put_run(("madlib", "S1", BaseEpsilon(99.0)), 0.987, 0.987)  # an old run of another grid
    reported()
    for file in sorted((made / "artifacts/report").iterdir()):
        assert file.read_bytes() == (changed / "artifacts/report" / file.name).read_bytes(), (
            file.name
        )


@pytest.mark.parametrize(("path", "stage"), EXPECTED["made_by"].items())
def test_missing_artifact_is_named_with_its_stage(changed, capsys, path, stage):
    (changed / "artifacts" / path).unlink()
    with pytest.raises(SystemExit) as stopped:
        stage_main(report.main)
    assert stopped.value.code == MissingArtifactError.exit_code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"artifacts/{path}" in said and f"stage {stage})" in said
    assert not (changed / "artifacts/report").exists()


def test_what_does_not_hold_stops_the_report(changed):
    file = "plans/madlib/S2/10.0/plan.parquet"
    put(file, STATIC[file] | {"budget": [41.0, 41.0, 70.0]})
    with pytest.raises(
        CheckFailedError,
        match=r"S1 and S2 plan data set alpha at base epsilon 10\.0 with budgets 40 and",
    ):
        report.main()
    put(file, STATIC[file])
    change("checks/plans/madlib/S1/1.0.json", expectations=[{"checked": 9, "unexpected": 4}])
    with pytest.raises(CheckFailedError, match=r"checks/plans/madlib/S1/1\.0\.json: 4 values"):
        report.main()


GRIDS = yaml.safe_load(Path(__file__).with_name("grids.yaml").read_text(encoding="utf-8"))


def nothing_scored():
    for file in Path("artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text())
        del record["datasets"]["alpha"]
        file.write_text(json.dumps(record))


def no_language_model():
    for strategy in artifacts.STRATEGIES:
        for epsilon in artifacts.EPSILONS:
            artifacts.put_recovery(
                ("madlib", strategy, BaseEpsilon(epsilon)), with_model=False, listed=3
            )


def exposure_that_differs():
    by_class = artifacts.counts(word={"perturbed": 10}, oov={"kept": 3})
    artifacts.change("private/madlib/S1/10.0/metrics.json", by_class=by_class)


def epsilon_per_token():
    artifacts.change_params(grid={"budget": "token"})
    for strategy in artifacts.STRATEGIES:  # the budget is what the longest text of a set spends
        for epsilon in artifacts.EPSILONS:
            per_token = {"budget": [2 * epsilon] * 3, "epsilon_per_token": [epsilon] * 3}
            file = f"plans/madlib/{strategy}/{epsilon}/plan.parquet"
            put(file, STATIC[file] | per_token)


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (epsilon_per_token, "epsilon per token"),
        (artifacts.put_others, "several mechanisms"),
        (partial(artifacts.put_others, refused="needs more than 417"), "refused"),
        (partial(artifacts.put_levels, [1.0, 10.0]), "levels and epsilons"),
        (nothing_scored, "nothing scored"),
        (no_language_model, "no language model"),
        (exposure_that_differs, "exposure that differs"),
    ],
)
def test_the_page_of_another_grid(make, name):
    make()
    page = artifacts.reported()
    expected = GRIDS[name]
    for table, start, cells in expected.get("cells", []):
        assert page.row(table, *start)[-len(cells) :] == cells
    assert all(phrase in page.text for phrase in expected.get("phrases", []))
    assert not any(phrase in page.text for phrase in expected.get("absent", []))
    assert set(expected.get("ids", [])) <= (ids := set(page.ids)) and not ids & set(
        expected.get("no_ids", [])
    )


@pytest.mark.usefixtures("changed")
def test_deniability_of_other_words_stops_the_report():
    artifacts.put_others()
    artifacts.put_deniability("tem", "word", artifacts.statistic(1.0, 1.0, 1.0), words=(1, 4))
    with pytest.raises(
        CheckFailedError,
        match=r"madlib/word\.json and .*tem/word\.json were measured on different words",
    ):
        report.main()


def test_the_page_of_the_replication_reads_the_same_project(changed):
    request = ReplicationRequest(
        paper="tem",
        sets=["imdb"],
        corpus=["corpus.jsonl"],
        texts=10,
        epsilons=[1.0, 10.0],
        mechanisms=["madlib"],
        neural=None,
        vectors=None,
        full=False,
    )
    (changed / REQUEST).write_text(json.dumps(asdict(request)), encoding="utf-8")
    replication([str(changed)])
    text = (changed / "replication.md").read_text(encoding="utf-8")
    assert text.startswith("# Replication of TEM\n")
    assert "TEM keeps at least the utility of MADLIB" in text


def test_a_share_never_reads_as_none_or_all_when_it_is_not():
    texts = {0.0: "0.0%", 0.0001: "<0.1%", 0.123: "12.3%", 0.9999: ">99.9%", 1.0: "100.0%"}
    assert {value: formatting.share(value) for value in texts} == texts


def test_documents_with_an_attribute_alone_have_an_answer(changed):
    """Without a task, the page answers by the similarity of the texts and by
    what an attacker finds."""
    for file in (changed / "artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        record["datasets"]["alpha"]["utility"] = {"left_out": "there is no label"}
        file.write_text(json.dumps(record), encoding="utf-8")
    text = reported().text
    assert "For alpha there is no label, so that no task says what is kept" in text
    # At ε 10 a reader names 8 of 64 words or fewer of the content words, and texts are nearest.
    assert re.search(r"madlib S1 at ε 10 stays nearest: a mean cosine of 0\.375", text)
    assert "finds the attribute with 0.500 in macro F1 (clean texts 0.625, guessing 0.125)" in text
    assert "I would take" not in text and "there is nothing to choose by" not in text


def test_a_run_is_the_answer_to_one_level_only(page):
    """The page says so if a larger share may be named and no other run keeps more."""
    answer = page.html.partition('id="answer-head"')[2].partition("</section>")[0]
    rows = [
        row for row in re.findall(r"<tr>.*?</tr>", answer, re.DOTALL) if "content words</td>" in row
    ]
    named = re.findall(r"<strong>madlib S\d</strong> at [^<]*", "".join(rows))
    assert len(rows) == 3 and len(named) == len(set(named)) < 3
    assert "the same run: of those between, none keeps more" in answer


SKIPPED = ["madlib", "S1", "5%"]


@pytest.fixture
def page_with_skipped(changed):
    """The page of a grid of epsilons and levels, of which a run at a level was skipped."""
    artifacts.put_levels([1.0, 10.0])
    artifacts.put_skipped([1.0, 10.0, "r0.2"])
    return reported()


def test_a_run_that_was_skipped_is_said_with_the_reason(page_with_skipped):
    text = page_with_skipped.text
    assert "Skipped, because no ε gives the wanted recovery: madlib S1 r0.05." in text
    assert "madlib S1 r0.05 was skipped: out of reach: as was found; ask for more." in text


def test_a_run_that_was_skipped_stands_in_its_place(page_with_skipped):
    rows = page_with_skipped.tables["results"]
    at = [row[:3] for row in rows].index(SKIPPED)
    assert [rows[at - 1][2], rows[at + 1][2]] == ["10", "20%, ε 7.75"]
    *figures, reason = rows[at][3:]
    assert set(figures) == {"–"}
    assert reason == "out of reach; the nearest is 6.2%"


def test_a_run_that_was_skipped_is_in_no_comparison(page_with_skipped):
    tables = page_with_skipped.tables
    assert [name for name in tables if SKIPPED in [row[:3] for row in tables[name]]] == ["results"]
    assert ["madlib S1", "5%"] not in [row[:2] for row in tables["at-levels-1"]]


@pytest.mark.usefixtures("page_with_skipped")
@pytest.mark.parametrize("name", ["runs.csv", "recovery.csv"])
def test_a_run_that_was_skipped_is_in_no_table_for_other_tools(name):
    text = Path("artifacts/report", name).read_text(encoding="utf-8")
    assert {row["level"] for row in csv.DictReader(text.splitlines())} == {"", "0.2"}


@pytest.mark.usefixtures("page_with_skipped")
def test_a_run_that_was_skipped_has_no_figures():
    names = {file.stem for file in Path("artifacts/runs").iterdir()}
    made = {f"madlib-S1-{epsilon}" for epsilon in ("1.0", "10.0", "r0.2")}
    assert names == made | {"none-none-0.0"}


def test_a_grid_of_which_every_run_was_skipped_has_a_report(changed):
    artifacts.put_skipped([])
    page = reported()
    assert page.text.count("madlib S1 r0.05 was skipped") == 1
    assert "0 runs and the clean baseline" in page.text
    assert "there is nothing to choose by" in page.text


def test_that_nothing_is_private_is_no_section_that_can_be_closed(page):
    header = page.html.partition("</header>")[0]
    assert "None of these outputs is private" in header and "<details" not in header
