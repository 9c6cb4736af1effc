"""What can be pointed at in a figure, and what its legend switches off."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

from lexveil.report.figures import Series, add_legend, new_panel, over_epsilon, tradeoff
from lexveil.report.svg import BLUE, ORANGE, drawing, to_svg
from tests.page.chromium import Chromium

LINES = [
    Series("S1", [1.0, 10.0, 50.0], [0.1, 0.2, 0.3], [0.01, 0.02, None]),
    Series("S2", [1.0, 10.0], [0.3, 0.4], [0.1, 0.1]),
]
SCRIPT = Path(__file__).parents[2] / "lexveil/report/page.js"


def lines() -> Markup:
    return over_epsilon("f", "T", "recall (%)", LINES, unit="1/d", y_limits=(0, 1), levels={"clean": 0.9})


def titles(svg: Markup) -> list[str]:
    return [str(title.text) for title in ElementTree.fromstring(svg).iter("title") if "id" not in title.attrib]


def series_of(svg: Markup) -> list[str]:
    return [part.attrib["data-series"] for part in ElementTree.fromstring(svg).iter() if "data-series" in part.attrib]


def test_points_say_their_values_also_where_they_stand_side_by_side() -> None:
    assert titles(lines()) == [
        *("S1, base ε 1: 10.0%", "S1, base ε 10: 20.0%", "S1, base ε 50: 30.0%"),
        *("S2, base ε 1: 30.0%", "S2, base ε 10: 40.0%"),
    ]
    svg = tradeoff("g", "T", "named (0 to 1)", LINES[:1], clean=(0.9, 0.8), levels=(0.2, 0.3))
    assert "S1: utility on rewritten texts (macro F1) 0.1, named (0 to 1) 1" in titles(svg)


def test_error_bars_belong_to_their_line() -> None:
    named = series_of(lines())
    assert (named.count("S1"), named.count("S2"), named.count("clean")) == (3, 3, 1)  # two bars each, and the line


@pytest.mark.parametrize(("kind", "value"), [("bar", "tokens 0.25"), ("barh", "words 25.0%")])
def test_bars_say_their_length(kind: str, value: str) -> None:
    def draw(figure: Figure) -> None:
        axes = new_panel(figure, "words (%)", "tokens")
        getattr(axes, kind)(["a", "b"], [0.25, 0.5], color=BLUE, label="one")
        getattr(axes, kind)(["a", "b"], [0.1, 0.2], color=ORANGE, label="other")
        add_legend(axes, 2)

    with drawing("b") as figure:
        draw(figure)
        svg = to_svg(figure, "b", "T", "D")
    assert titles(svg)[0] == f"one: {value}" and len(titles(svg)) == 4
    assert series_of(svg) == ["one", "one", "other", "other"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser is installed")
def test_the_legend_switches_a_series_off_and_on(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<style>svg [hidden] {{ display: none }}</style>{lines()}<script>{SCRIPT.read_text()}</script>")
    shown = "[...document.querySelectorAll('[data-series=S1]')].filter(one => one.getBoundingClientRect().width).length"
    with Chromium() as browser:
        browser.open(page.as_uri())
        before = browser.ask(shown)
        browser.ask("document.querySelector('[role=button]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        assert before > 0 and browser.ask(shown) == 0
        assert browser.ask("document.querySelector('[role=button]').getAttribute('aria-pressed')") == "false"
        browser.ask(
            "document.querySelector('[role=button]').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))"
        )
        assert browser.ask(shown) == before
