"""The page of the replication: ours and the papers' figures of the same sets, and the verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.replication.__main__ import OURS, compared, main, make_project, markdown
from examples.replication.literature import PUBLISHED_CSV, parse
from lexveil.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.report.evaluation_values import CLEAN
from lexveil.report.formatting import MeanSd

SHARED = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"
PUBLISHED = parse(PUBLISHED_CSV.read_text(encoding="utf-8"))


def test_figures_of_the_papers_stand_below_ours() -> None:
    """Of the mechanisms, strategies and epsilons of the run alone, and nothing of a set that nobody printed."""
    runs = [("madlib", strategy, epsilon) for strategy in ("S1", "S4") for epsilon in (1.0, 2.0)]
    values = {(UTILITY_MICRO.name, key): MeanSd(0.625, 0.0625) for key in (CLEAN, *runs)}
    (table,) = compared({"sst2": values, "mine": values}, runs, PUBLISHED)
    assert table.caption == "sst2: utility"
    assert [[row[0], row[1], row[2], *row[4:]] for row in [[cell.text for cell in row] for row in table.cells]] == [
        ["madlib", "S1", OURS, "0.625", "0.625"],
        ["madlib", "S1", "1-Diffractor Table 3, bert-base-uncased", "0.530 ± 0.015", "–"],
        ["madlib", "S1", "CLMLDP Table 3, deberta-v3-base", "0.539 ± 0.029", "–"],
        ["madlib", "S4", OURS, "0.625", "0.625"],
        ["madlib", "S4", "CLMLDP Table 3, deberta-v3-base", "0.527 ± 0.025", "–"],
    ]
    assert markdown(table).startswith("**sst2: utility**\n\n| mechanism | strategy | figures of | clean texts |")


def test_means_over_several_sets_stand_beside_printed_means() -> None:
    runs = [("madlib", "S2", 50.0)]
    values = {("cosine", key): MeanSd(0.5, 0.1) for key in runs}
    (table,) = compared(dict.fromkeys(("cola", "mrpc", "rte", "sst2"), values), runs, PUBLISHED)
    assert table.caption == "cola, mrpc, rte, sst2: cosine"
    assert [row[-1].text for row in table.cells] == ["0.500", "0.940"]


def test_a_folder_without_sets_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(tmp_path / "new"), "--sets", str(tmp_path)])
    assert end.value.code == 2 and "holds no set of the papers" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")
def test_the_command_makes_the_project(tmp_path: Path) -> None:
    make_project(tmp_path / "project", [SHARED / "rte.parquet"], "en")
    main([str(tmp_path / "project")])
    assert "CLMLDP Table 3" in (tmp_path / "project" / "replication.md").read_text(encoding="utf-8")
