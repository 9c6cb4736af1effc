"""Charts, tables and numbers: where points stand, what is said of them, and what the legend switches off."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lexveil.report import charts, formatting
from lexveil.report.charts import Axis, Chart, ChartPoint, Series, over_epsilon, share_axis
from lexveil.report.formatting import Interval, MeanSd
from lexveil.report.page import FOLDER, environment
from lexveil.report.table import Column, Table
from tests.page.chromium import Chromium

KNOWN = {
    ("tem", "S1", 1.0): Interval(0.1, 0.09, 0.11),
    ("tem", "S1", 10.0): Interval(0.2, 0.18, 0.22),
    ("tem", "S3", 1.0): MeanSd(0.3, None, 0.1),
    ("tem", "S3", 10.0): 0.4,
    ("madlib", "S1", 10.0): 0.9,
}


def lines(*strategies: str) -> Chart:
    known = {key: value for key, value in KNOWN.items() if key[1] in strategies}
    (chart,) = over_epsilon("f", "T < 1", share_axis("recall (%)"), known, "tem", {"clean texts": 0.9})
    return chart


def drawn(chart: Chart) -> str:
    return str(environment().globals["render_chart"](chart))


def test_a_chart_is_labelled_escaped_and_has_every_style() -> None:
    many = [Series(f"{n} < {n}", [ChartPoint(1, n), ChartPoint(2, n)]) for n in range(charts.STYLES + 1)]
    html = drawn(Chart(name="x", title="T", x=Axis("a < b"), y=Axis("y"), series=many, clean=(1, 2), down={"m": 1}))
    root = ElementTree.fromstring(html.strip())
    assert "a < b over" not in html and html.count("0 &lt; 0") > 2
    styles = {part.get("class") for part in root.iter("g") if "data-series" in part.attrib}
    assert styles == {*(f"s{number}" for number in range(charts.STYLES)), "star"}
    css = (FOLDER / "page.css").read_text(encoding="utf-8")
    assert all(f".{style} {{" in css for style in styles)
    assert all(part.get("d") for part in root.iter("path"))  # each has a marker


def test_a_table_as_csv_keeps_raw_values() -> None:
    columns = [Column(key, "") for key in "acd"]
    columns.insert(1, Column("b", "B", formatting.share, "G"))
    rows = [{"a": "x, y", "b": 0.12345, "d": MeanSd(0.5, 0.25)}, {"a": "z", "d": MeanSd(1.5, None)}]
    table = Table("t", columns, rows)
    assert table.csv == 'a,b,d,d_sd\n"x, y",0.12345,0.5,0.25\nz,,1.5,\n'  # and no column c, of which nothing is known
    assert table.groups == [("", 1), ("G", 1), ("", 1)]
    assert [[cell.text for cell in row] for row in table.cells] == [["x, y", "12.3%", "0.5"], ["z", "–", "1.5"]]
    assert Table("t", columns, []).csv == "a,b,c,d\n"


@pytest.mark.parametrize(
    ("show", "texts"),
    [
        (formatting.share, {0.0: "0.0%", 0.0001: "<0.1%", 0.123: "12.3%", 0.9999: ">99.9%", 1.0: "100.0%"}),
        (formatting.factor, {0.0: "×1.00", 0.9: "×2.46", 5.0: "×148", 50.0: "×10²²", 1e5: "×10⁴³⁴²⁹"}),
    ],
)
def test_numbers_never_read_as_what_they_are_not(show: Callable[[float], str], texts: dict[float, str]) -> None:
    assert {value: show(value) for value in texts} == texts


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser is installed")
def test_the_legend_switches_a_series_off_and_on_and_tables_sort(tmp_path: Path) -> None:
    rows = [{"a": "x", "b": 10.0}, {"a": "y", "b": 9.0}, {"a": "z"}]
    table = Table("t", [Column("a", "A"), Column("b", "B", formatting.two)], rows)
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    html = f"{drawn(lines('S1', 'S3'))}{environment().globals['render_table'](table, 'c')}"
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
