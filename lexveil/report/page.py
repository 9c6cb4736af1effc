"""The page: one HTML file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.section import Section

FRAME, MACROS = "page.html.j2", "macros.html.j2"
USE_MACROS = "{% from '" + MACROS + "' import render_table, render_panel %}\n"


def render(report: ReportData, sections: Sequence[Section]) -> str:
    """The page with some sections, in their order.

    Raises:
        jinja2.UndefinedError: if the prose of a section uses a name that its view does not have.
    """
    environment = _environment({section.name: USE_MACROS + section.prose for section in sections})
    bodies = [
        {
            "name": section.name,
            "title": section.title,
            "heading": section.heading,
            "body": Markup(environment.get_template(section.name).render(section.view(report), params=report.params)),
        }
        for section in sections
    ]
    # Both files are ours and hold no closing tag of their own.
    own = {"style": Markup(_text("page.css")), "script": Markup(_text("page.js"))}
    view = {
        "version": report.runs[0].record["lexveil"],
        "n_runs": len(report.runs) - 1,
        "n_texts": report.runs[-1].metrics["n_texts"],
        "datasets": sorted(report.coverage),
        "n_samples": len(report.samples),
    }
    return environment.get_template(FRAME).render(view, sections=bodies, **own).rstrip() + "\n"


def _environment(templates: Mapping[str, str]) -> Environment:
    environment = Environment(
        loader=DictLoader({FRAME: _text(FRAME), MACROS: _text(MACROS), **templates}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "count": formatting.count,
        "share": formatting.share,
        "epsilon": formatting.epsilon,
        "run_epsilon": formatting.run_epsilon,
        "three": formatting.three,
        "breakable": _breakable,
        "listed": formatting.listed,
    }
    return environment


def _text(name: str) -> str:
    """A file of this package."""
    return (resources.files("lexveil.report") / name).read_text(encoding="utf-8")


def _breakable(token: str) -> Markup:
    """A token that may be broken after each of its words; `_` alone is no place for it."""
    return Markup("_<wbr>").join(token.split("_"))
