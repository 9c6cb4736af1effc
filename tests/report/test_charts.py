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
from lexveil.report.sections import neighbours
from lexveil.report.sections.corpus import pmi_chart
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


def test_points_say_their_values() -> None:
    assert [mark.title for line in lines("S1", "S3").drawn for mark in line.marks] == [
        "S1: recall 10.0% (9.0%–11.0%), base ε per word 1", "S1: recall 20.0% (18.0%–22.0%), base ε per word 10",
        "S3: recall 30.0% (20.0%–40.0%), base ε per word 1", "S3: recall 40.0%, base ε per word 10",
    ]  # fmt: skip
    assert lines("S1").description.endswith("S1: 10.0% at 1, 20.0% at 10. Clean texts: 90.0%.")


def test_points_of_one_epsilon_stand_side_by_side_with_their_bars_in_a_style_that_stays() -> None:
    first, second = lines("S1", "S3").drawn
    assert second.marks[0].x - first.marks[0].x == pytest.approx(4)
    assert first.marks[0].bars.startswith(f"M{first.marks[0].x} ") and not second.marks[1].bars
    inside = (charts.LEFT < mark.x < charts.WIDTH and 0 < mark.y < charts.HEIGHT for mark in first.marks + second.marks)
    assert all(inside) and (first.style, second.style) == ("s0", "s2")
    assert lines("S3").drawn[0].style == "s2"  # whatever stands beside it


@pytest.mark.parametrize(
    ("axis", "values", "ticks"),
    [
        (Axis("a", limits=(0, 1)), [], ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (share_axis("a"), [], ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (Axis("a"), [3.0, 4200.0], ["0", "1k", "2k", "3k", "4k"]),
        (Axis("a", is_log=True), [1.0, 3e4], ["1", "10", "100", "1k", "10k"]),
        # Labels that would touch are left out, but for the last.
        (charts.epsilon_axis("a", [50, 0.1, 0.5, 1, 10, 10.5, 11]), [0.1, 50], ["0.1", "0.5", "1", "10", "50"]),
        (Axis("a", is_log=True, ticks=[3]), [3.0], ["3"]),
    ],
)
def test_ticks(axis: Axis, values: list[float], ticks: list[str]) -> None:
    assert [label for _, label in axis.scale(values, charts.LEFT, charts.WIDTH - charts.RIGHT).ticks] == ticks


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


def test_a_histogram_shows_empty_bins_as_empty() -> None:
    rows = [{"ngrams": "bigrams", "pmi_bits": bits, "n_collocations": n} for bits, n in ((1.0, 4), (2.0, 6))]
    (line,) = pmi_chart(rows).series
    assert [(point.x, point.y) for point in line.points] == [(1.0, 4), (1.5, 0), (2.0, 6)]
    assert pmi_chart([]).drawn == []


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


def test_choice_of_tokens() -> None:
    tokens = ["the", "a_b", "x", "y", "1", "of_x", "z", "c_d", "u_v"]
    asked = [(1, (1, 2)), (1, (2, 9)), (2, (1, 3)), (3, (1, 3))]
    chosen = [neighbours.choose(tokens, n_words, {"the", "of"}, ranks) for n_words, ranks in asked]
    assert chosen == [[2, 3], [3, 6], [1, 8], []]


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
