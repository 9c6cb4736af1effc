"""The page of other grids: several mechanisms, levels of recovery, one run; and of what was not measured."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.replication.__main__ import main as replication
from lexveil.errors import CheckFailed
from tasks import report
from tests.report import artifacts
from tests.report.artifacts import EPSILONS, STRATEGIES, put_deniability, put_levels, put_others, statistic

pytestmark = pytest.mark.usefixtures("changed")
GRIDS = yaml.safe_load(Path(__file__).with_name("grids.yaml").read_text(encoding="utf-8"))


def nothing_scored() -> None:
    for file in Path("artifacts/evaluation").rglob("*.json"):
        record = json.loads(file.read_text())
        del record["datasets"]["alpha"]
        file.write_text(json.dumps(record))


def no_language_model() -> None:
    for strategy in STRATEGIES:
        for epsilon in EPSILONS:
            artifacts.put_recovery(("madlib", strategy, epsilon), with_model=False, listed=3)


def exposure_that_differs() -> None:
    by_class = artifacts.counts(word={"perturbed": 10}, oov={"kept": 3})
    artifacts.change("private/madlib/S1/10.0/metrics.json", by_class=by_class)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (put_others, "several mechanisms"),
        (partial(put_others, refused="needs more than 417"), "refused"),
        (partial(put_levels, [1.0, 10.0]), "levels and epsilons"),
        (nothing_scored, "nothing scored"),
        (no_language_model, "no language model"),
        (exposure_that_differs, "exposure that differs"),
    ],
)
def test_the_page_of_another_grid(make: Any, name: str) -> None:
    make()
    page, expected = artifacts.reported(), GRIDS[name]
    for table, start, cells in expected.get("cells", []):
        assert page.row(table, *start)[-len(cells) :] == cells
    assert all(phrase in page.text for phrase in expected.get("phrases", []))
    assert not any(phrase in page.text for phrase in expected.get("absent", []))
    assert set(expected.get("ids", [])) <= (ids := set(page.ids)) and not ids & set(expected.get("no_ids", []))


def test_deniability_of_other_words_stops_the_report() -> None:
    put_others()
    put_deniability("tem", "word", statistic(1.0, 1.0, 1.0), words=(1, 4))
    with pytest.raises(CheckFailed, match=r"madlib/word\.json and .*tem/word\.json are of different words"):
        report.main()


def test_the_page_of_the_replication_reads_the_same_project(changed: Path) -> None:
    replication([str(changed)])
    text = (changed / "replication.md").read_text(encoding="utf-8")
    assert text.startswith("# Replication\n") and "Cosine similarity rises with ε for each strategy." in text
