"""Rendering of the report as one HTML page, which needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lexveil.lab.report import charts, formatting
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.section import PageSection

FOLDER = Path(__file__).parent
MACROS = {"render_table": "macros.html.j2", "render_chart": "chart.html.j2"}
FILTERS = ("count", "share", "run_noise", "three", "listed")


def render(report: ReportData, sections: Sequence[PageSection]) -> str:
    """Render the HTML page of the report with some sections, in their order.

    Raises:
        jinja2.UndefinedError: if the template of a section uses a name that its view does not have.
    """
    templates = environment()
    bodies = [
        Markup(
            templates.get_template(section.template).render(
                section.view(report), params=report.params
            )
        )
        for section in sections
    ]
    page = templates.get_template("page.html.j2").render(
        sections=list(zip(sections, bodies, strict=True)),
        # Both files belong to the library and contain no closing tag.
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup((FOLDER / "page.js").read_text(encoding="utf-8")),
        version=report.runs[0].record["lexveil"],
        n_runs=len(report.runs) - 1,
        skipped=report.skipped,
        n_texts=report.runs[-1].metrics["n_texts"],
        datasets=sorted(report.coverage),
        n_samples=len(report.samples),
    )
    return page.rstrip() + "\n"


def environment() -> Environment:
    """Return the Jinja environment with the macros and filters that section templates use."""
    templates = Environment(
        loader=FileSystemLoader([FOLDER, FOLDER / "sections"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {name: getattr(formatting, name) for name in FILTERS} | {
        "breakable": _breakable
    }
    templates.globals |= {"width": charts.WIDTH, "height": charts.HEIGHT}
    for macro, file in MACROS.items():
        templates.globals[macro] = getattr(templates.get_template(file).module, macro)
    return templates


def _breakable(token: str) -> Markup:
    """Mark up a token in HTML so that the browser may break the line after each of its words;
    browsers do not break lines at `_`.
    """
    return Markup("_<wbr>").join(token.split("_"))
