"""The figures of the papers: complete, as printed, and beside the right rows of ours; and the page with both."""

import csv
import io
from pathlib import Path

import pytest

from examples.replication.__main__ import OURS, compared, main, markdown
from examples.replication.literature import PUBLISHED_CSV, parse
from lexveil.config import CLEAN
from lexveil.errors import ParameterError
from lexveil.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.report.formatting import MeanSd

TEXT = PUBLISHED_CSV.read_text(encoding="utf-8")
PUBLISHED = parse(TEXT)


def test_figures_are_as_printed() -> None:
    """As read from the papers a second time; MRPC at ε 15 is the slip."""
    rows = list(csv.DictReader(io.StringIO(TEXT)))
    with Path(__file__).with_name("printed.csv").open(encoding="utf-8") as file:
        for printed in csv.DictReader(file):
            assert sum(printed.items() <= row.items() for row in rows) == 1, printed


@pytest.mark.parametrize(
    ("before", "after"), [(",percent,", ",per cent,"), ("84.97", "about 85"), ("deberta-v3-base\n", "\n"), ("S3", "")]
)
def test_a_row_that_is_not_complete_is_refused(before: str, after: str) -> None:
    with pytest.raises(ParameterError, match=r"published\.csv, line \d+: not a complete row"):
        parse(TEXT.replace(before, after, 1))


def test_figures_of_the_papers_stand_below_ours() -> None:
    """Of the mechanisms, strategies and epsilons of the run alone, and nothing of a set that nobody printed."""
    runs = [("madlib", "S1", 1.0), ("madlib", "S1", 2.0)]
    values = {(UTILITY_MICRO.name, key): MeanSd(0.625, 0.0625) for key in (CLEAN, *runs)}
    ((caption, table),) = compared({"sst2": values, "mine": values}, runs, PUBLISHED)
    assert [[cell.text for cell in (*row[:3], *row[4:])] for row in table.cells] == [
        ["madlib", "S1", OURS, "0.625", "0.625"],
        ["madlib", "S1", "1-Diffractor Table 3, bert-base-uncased", "0.530 ± 0.015", "–"],
        ["madlib", "S1", "CLMLDP Table 3, deberta-v3-base", "0.539 ± 0.029", "–"],
    ]
    start = "**sst2: utility**\n\n| mechanism | strategy | figures of | clean texts | ε 1 |"
    assert markdown(caption, table).startswith(start)
    four = {key: {("cosine", ("madlib", "S2", 50.0)): MeanSd(0.5, 0.1)} for key in ("cola", "mrpc", "rte", "sst2")}
    ((caption, table),) = compared(four, [("madlib", "S2", 50.0)], PUBLISHED)
    assert (caption, [row[-1].text for row in table.cells]) == ("cola, mrpc, rte, sst2: cosine", ["0.500", "0.940"])


def test_a_folder_without_sets_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(tmp_path / "new"), "--sets", str(tmp_path)])
    assert end.value.code == 2 and "holds no set of the papers" in capsys.readouterr().err
