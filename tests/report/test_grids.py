"""The page of other grids: several mechanisms, levels of recovery, one run; and of what was not measured."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from examples.replication.__main__ import main as replication
from lexveil.errors import CheckFailed
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report import epsilon_units
from lexveil.report.records import RunRecovery
from lexveil.report.sections.guarantee import measured_of
from tasks import report
from tests.report import artifacts
from tests.report.artifacts import put_deniability, put_recovery, reported, set_grid, statistic
from tests.report.records import named, recovered

pytestmark = pytest.mark.usefixtures("changed")


def test_several_mechanisms_and_their_units() -> None:
    """The bound is of Euclidean distances alone, and no table has what no strategy of the grid uses."""
    artifacts.put_others()
    page = reported()
    assert [row[0] for row in page.tables["utility-1"][2:]] == ["madlib", "tem", "diffractor_geometric"]
    assert page.row("deniability", "tem", "word", "10")[4] == "99.2"
    assert page.row("deniability", "diffractor_geometric", "word", "1")[9:] == ["90.2", "1 / list position"]
    assert not [row for row in page.tables["deniability"] if row[1] == "gst"]
    for phrase in (
        "ε is in 1 / embedding distance for madlib and tem; 1 / list position for diffractor_geometric.",
        "For madlib and tem, whose distance is the Euclidean one",
        "d the largest difference of the words' indexes over the lists",
        "as tem draws (tem only)",
        "a ring is the",
    ):
        assert phrase in page.text
    for chart, unit in (
        ("s-w-word", "ε of a word (1 / distance of the mechanism, log)"),
        ("unchanged-tem", "base ε per word (1 / embedding distance, log)"),
        ("unchanged-diffractor_geometric", "base ε per word (1 / list position, log)"),
    ):
        (svg,) = re.findall(rf'<svg[^>]*aria-labelledby="{chart}-title.*?</svg>', page.html, flags=re.DOTALL)
        assert unit in svg and svg.count('class="ring"') == 4 * (chart == "s-w-word")  # two mechanisms, two epsilons
    set_grid(mechanisms=["diffractor_geometric"])
    for room in ("plans", "checks/plans"):
        Path(f"artifacts/{room}/madlib").rename(f"artifacts/{room}/diffractor_geometric")
    page = reported()
    assert "bound" not in page.tables and "budgets" in page.tables


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_a_unit(mechanism: str) -> None:
    metric = MECHANISMS[mechanism].metric
    assert (epsilon_units.unit(mechanism) == "1 / list position") == ("index" in metric)
    assert ("Mahalanobis" in epsilon_units.unit(mechanism)) == ("Mahalanobis" in metric)


def test_an_epsilon_that_was_refused_is_said() -> None:
    artifacts.put_others(refused="needs more than 417")
    page = reported()
    assert page.row("deniability", "tem", "word", "1")[:-1] == ["–"] * 10
    assert "tem, word, ε 1: needs more than 417" in page.text
    put_deniability("tem", "word", statistic(1.0, 1.0, 1.0), words=(1, 4))
    with pytest.raises(CheckFailed, match=r"madlib/word\.json and .*tem/word\.json are of different words"):
        report.main()


@pytest.mark.parametrize("epsilons", [[], [1.0, 10.0]])
def test_runs_at_levels_are_compared_on_the_page(epsilons: list[float]) -> None:
    """With runs at base epsilons beside them and without; what is drawn over ε has none of them."""
    artifacts.put_levels(epsilons)
    page = reported()
    # Of 48 replaced content words 3 are named, by context and by the word.
    cells = [[cell.split()[0] for cell in row] for row in page.tables["at-levels-1"][2:]]
    assert [[*row[1:5], row[-1]] for row in cells] == [
        ["5%", "6.2%", "6.2%", "0.50", "2.5"], ["20%", "6.2%", "6.2%", "0.62", "7.75"],
        ["–", "–", "–", "0.88", "–"], ["–", "–", "–", "0.38", "–"],
    ]  # fmt: skip
    runs = [row[2] for row in page.tables["results"][2:]]
    assert runs == [*(f"{epsilon:g}" for epsilon in epsilons), "5%, ε 2.5", "20%, ε 7.75", "–"]
    with Path("artifacts/report/runs.csv").open(encoding="utf-8") as file:
        assert [(run["epsilon"], run["level"]) for run in csv.DictReader(file)][-2:] == [
            ("2.5", "0.05"),
            ("7.75", "0.2"),
        ]
    assert "madlib/S1/r0.05" in json.loads(Path("artifacts/report/metrics.json").read_text())["runs"]
    assert ("unchanged-madlib" in page.html) == ("budgets" in page.tables) == bool(epsilons)


def test_one_run_and_no_trigrams_still_make_a_page() -> None:
    set_grid(strategies=["S2"], epsilons=[10.0])
    trigrams = "artifacts/collocations/trigrams.parquet"
    pq.write_table(pq.read_table(trigrams).slice(0, 0), trigrams)
    page = reported()
    assert [row[:3] for row in page.tables["results"][2:]] == [["madlib", "S2", "10"], ["none", "none", "–"]]
    assert page.row("corpus", "Trigrams kept as collocations") == ["0", "0.0%"]
    assert page.tables["trigrams-by-pmi"] == [["Collocation", "Count", "PMI (bits)"]]


def test_nothing_scored_still_makes_a_page() -> None:
    for file in Path("artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text())
        del record["datasets"]["alpha"]
        file.write_text(json.dumps(record))
    page = reported()
    assert not {"attack-1", "glance"} & page.tables.keys() and "there is nothing to choose by" in page.text
    assert "Not measured in these runs: cosine similarity, perplexity and membership inference." in page.text
    assert json.loads(Path("artifacts/report/metrics.json").read_text())["evaluation"]["madlib/S1/1.0"] == {"beta": {}}


def test_no_deviation_of_one_training_and_no_gain_over_an_attack_that_never_worked() -> None:
    artifacts.put_scores(("none", "none", 0.0), utility=0.875, adaptive=0.0, on_clean=0.875, sd=None)
    page = reported()
    assert page.row("attack-1", "madlib", "S1", "utility F1")[:2] == ["0.875", "0.375"]
    assert "relative gain" not in [row[2] for row in page.tables["attack-1"]] and "Relative gain is" not in page.text


def test_recovery_without_a_language_model_is_by_the_word() -> None:
    for strategy in artifacts.STRATEGIES:
        for epsilon in artifacts.EPSILONS:
            put_recovery(("madlib", strategy, epsilon), with_model=False, listed=3)
    page = reported()
    assert page.row("recovery", "madlib", "S2", "10")[2:] == ["10.9% (5.4–20.9)"]
    assert page.tables["recovery-bands"][0][-1] == "Listed words"
    assert page.row("recovery-bands", "madlib", "S2", "10")[-1] == "18.8% (6.6–43.0)"


def test_exposure_that_differs_by_epsilon_gets_a_row_of_its_own() -> None:
    by_class = artifacts.counts(word={"perturbed": 10}, oov={"kept": 3})
    artifacts.change("private/madlib/S1/10.0/metrics.json", by_class=by_class)
    page = reported()
    assert [page.row("exposure", "madlib", "S1", epsilon)[7] for epsilon in ("1", "10")] == ["0", "3"]


def test_what_a_reader_got_back_of_rare_words() -> None:
    def measured(epsilon: float, n_right: int, n_same: int) -> RunRecovery:
        bands = {"rare": {"n": 100, "by_word": recovered(n_right, 100), "unchanged": recovered(n_same, 100)}}
        return RunRecovery(named("tem", "S1", epsilon) | {"all": bands, "datasets": {}})

    runs: Any = [SimpleNamespace(key=("tem", "S1", epsilon)) for epsilon in (1.0, 5.0)]
    recovery = [measured(1.0, 0, 1), measured(5.0, 20, 30), measured(50.0, 100, 100)]
    assert measured_of(runs, recovery) == (2, "0 to 20", "1 to 30")
    assert measured_of(runs[:1], recovery) == (1, "0", "1") and measured_of(runs[:1], recovery[1:]) is None


def test_the_page_of_the_replication_reads_the_same_project(changed: Path) -> None:
    replication([str(changed)])
    text = (changed / "replication.md").read_text(encoding="utf-8")
    assert text.startswith("# Replication\n") and "Cosine similarity rises with ε for each strategy." in text
