"""Charts, tables and numbers: where points stand, what is said of them, and what the legend switches off."""

import shutil
from pathlib import Path

import pytest

from lexveil.report import formatting
from lexveil.report.charts import Axis, Chart, ChartPoint, Series
from lexveil.report.formatting import MeanSd
from lexveil.report.page import FOLDER, environment
from lexveil.report.table import Column, Table
from tests.page.chromium import Chromium


def test_a_table_as_csv_keeps_raw_values() -> None:
    columns = [Column(key, "") for key in "acd"]
    columns.insert(1, Column("b", "B", formatting.share, "G"))
    rows = [{"a": "x, y", "b": 0.12345, "d": MeanSd(0.5, 0.25)}, {"a": "z", "d": MeanSd(1.5, None)}]
    table = Table("t", columns, rows)
    assert table.csv == 'a,b,d,d_sd\n"x, y",0.12345,0.5,0.25\nz,,1.5,\n'  # and no column c, of which nothing is known
    assert table.groups == [("", 1), ("G", 1), ("", 1)]
    assert [[cell.text for cell in row] for row in table.cells] == [["x, y", "12.3%", "0.5"], ["z", "–", "1.5"]]
    assert Table("t", columns, []).csv == "a,b,c,d\n"


def test_a_share_never_reads_as_none_or_all_when_it_is_not() -> None:
    texts = {0.0: "0.0%", 0.0001: "<0.1%", 0.123: "12.3%", 0.9999: ">99.9%", 1.0: "100.0%"}
    assert {value: formatting.share(value) for value in texts} == texts


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser is installed")
def test_the_legend_switches_a_series_off_and_on_and_tables_sort(tmp_path: Path) -> None:
    rows = [{"a": "x", "b": 10.0}, {"a": "y", "b": 9.0}, {"a": "z"}]
    table = Table("t", [Column("a", "A"), Column("b", "B", formatting.two)], rows)
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    series = [Series(f"{label} < 1", [ChartPoint(1, 1), ChartPoint(2, 2)]) for label in "ab"]
    show = environment().globals
    html = show["render_chart"](Chart(name="x", title="T", x=Axis("x"), y=Axis("y"), series=series))
    html += show["render_table"](table, "c")
    (tmp_path / "page.html").write_text(f"<style>{style}</style>{html}<script>{script}</script>", encoding="utf-8")
    shown = "[...document.querySelectorAll('g[data-series]')].filter(one => one.getBoundingClientRect().width).length"
    with Chromium() as browser:
        browser.open((tmp_path / "page.html").as_uri())
        for n_shown in (2, 1, 2):
            assert browser.ask(shown) == n_shown
            browser.ask("document.querySelector('.legend input').click()")
        browser.ask("document.querySelector('th[data-column=\"1\"] button').click()")
        order = "[...document.querySelectorAll('tbody th')].map(one => one.textContent).join('')"
        assert browser.ask(order) == "yxz"  # by number, what is missing last
