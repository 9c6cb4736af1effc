"""The page of other grids: several mechanisms, levels of recovery, one run; and of what was not measured."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from examples.replication.__main__ import main as replication
from lexveil.errors import CheckFailed
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.report import epsilon_units
from lexveil.report.records import RunRecovery
from lexveil.report.sections.guarantee import measured_of
from tasks import report
from tests.report.artifacts import (
    EPSILONS,
    STRATEGIES,
    change,
    counts,
    put_deniability,
    put_levels,
    put_others,
    put_recovery,
    put_scores,
    reported,
    set_grid,
    statistic,
)  # fmt: skip
from tests.report.records import named, recovered

pytestmark = pytest.mark.usefixtures("changed")
GRIDS = yaml.safe_load(Path(__file__).with_name("grids.yaml").read_text(encoding="utf-8"))


def lists_only() -> None:
    put_others()
    set_grid(mechanisms=["diffractor_geometric"])
    for room in ("plans", "checks/plans"):
        Path(f"artifacts/{room}/madlib").rename(f"artifacts/{room}/diffractor_geometric")


def one_run_and_no_trigrams() -> None:
    set_grid(strategies=["S2"], epsilons=[10.0])
    trigrams = "artifacts/collocations/trigrams.parquet"
    pq.write_table(pq.read_table(trigrams).slice(0, 0), trigrams)


def nothing_scored() -> None:
    for file in Path("artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text())
        del record["datasets"]["alpha"]
        file.write_text(json.dumps(record))


def no_language_model() -> None:
    for strategy in STRATEGIES:
        for epsilon in EPSILONS:
            put_recovery(("madlib", strategy, epsilon), with_model=False, listed=3)


def exposure_that_differs() -> None:
    by_class = counts(word={"perturbed": 10}, oov={"kept": 3})
    change("private/madlib/S1/10.0/metrics.json", by_class=by_class)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (put_others, "several mechanisms"),
        (partial(put_others, refused="needs more than 417"), "refused"),
        (lists_only, "lists only"),
        (partial(put_levels, []), "levels"),
        (partial(put_levels, [1.0, 10.0]), "levels and epsilons"),
        (one_run_and_no_trigrams, "one run and no trigrams"),
        (nothing_scored, "nothing scored"),
        (partial(put_scores, ("none", "none", 0.0), 0.875, 0.0, 0.875, None), "one training, no attack"),
        (no_language_model, "no language model"),
        (exposure_that_differs, "exposure that differs"),
    ],
)
def test_the_page_of_another_grid(make: Any, name: str) -> None:
    make()
    page, expected = reported(), GRIDS[name]
    for table, start, cells in expected.get("cells", []):
        assert page.row(table, *start)[-len(cells) :] == cells
    assert all(phrase in page.text for phrase in expected.get("phrases", []))
    assert not any(phrase in page.text for phrase in expected.get("absent", []))
    assert set(expected.get("ids", [])) <= (ids := set(page.ids)) and not ids & set(expected.get("no_ids", []))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_a_unit(mechanism: str) -> None:
    metric = MECHANISMS[mechanism].metric
    assert (epsilon_units.unit(mechanism) == "1 / list position") == ("index" in metric)
    assert ("Mahalanobis" in epsilon_units.unit(mechanism)) == ("Mahalanobis" in metric)


def test_deniability_of_other_words_stops_the_report() -> None:
    put_others()
    put_deniability("tem", "word", statistic(1.0, 1.0, 1.0), words=(1, 4))
    with pytest.raises(CheckFailed, match=r"madlib/word\.json and .*tem/word\.json are of different words"):
        report.main()


def test_files_of_runs_at_levels_have_a_column_for_the_level() -> None:
    put_levels([])
    reported()
    with Path("artifacts/report/runs.csv").open(encoding="utf-8") as file:
        assert [(run["epsilon"], run["level"]) for run in csv.DictReader(file)] == [("2.5", "0.05"), ("7.75", "0.2")]
    assert "madlib/S1/r0.05" in json.loads(Path("artifacts/report/metrics.json").read_text())["runs"]


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
