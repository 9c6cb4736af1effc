"""Privacy statement: a privacy record as a few lines for people, followed by figures that only the
operator may see.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any

from lexveil.core.accounting.operator_report import OperatorReport
from lexveil.core.accounting.record import PrivacyRecord

# A statement warns above these shares of kept tokens and of unchanged perturbed tokens.
MUCH_UNPROTECTED = 0.3
MUCH_UNCHANGED = 0.8
WIDTH = 96  # characters per line of a page

PRIVATE = "private to the operator, as secret as the source:"


def statement(
    record: PrivacyRecord, operator: OperatorReport | None = None, files: Sequence[str] = ()
) -> list[str]:
    """Return the lines of the privacy statement: expected recovery, actions and guarantee,
    followed by the costs and the comparisons of source and output, which are marked as private.

    Args:
        files: lines about the output files.
    """
    return lines_of(
        "core.accounting", "statement.txt.j2", record=record, operator=operator, files=files
    )


def statement_for_recipients(record: PrivacyRecord, name: str) -> str:
    """Write the privacy statement for an output's recipients, a page of plain sentences. It uses
    only the privacy record, so the whole page may be published.

    Args:
        name: the name of the output.
    """
    values = {"record": record, "name": name, "record_name": f"{name}.record.json"}
    lines = lines_of("core.accounting", "recipients.txt.j2", **values)
    return "\n".join(map(_wrapped, lines)) + "\n"


def _wrapped(line: str) -> str:
    behind = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=behind, break_on_hyphens=False)


def _sentence(text: str) -> str:
    """Return the text with a capital first letter and a final full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def lines_of(room: str, template: str, **values: Any) -> list[str]:
    """Render a text template of the package ``lexveil.ROOM``, where ROOM is ``room``, and return
    its lines.
    """
    text: str = _environment(room).get_template(template).render(values)
    return text.splitlines()


def _figure(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}"


def _percent(share: float | None, digits: int = 1) -> str:
    return "-" if share is None else f"{share:.{digits}%}"


@cache
def _environment(room: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader(f"lexveil.{room}")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    cautions = {"much_unprotected": MUCH_UNPROTECTED, "much_unchanged": MUCH_UNCHANGED}
    environment.globals |= {**cautions, "private": PRIVATE}
    environment.filters |= {"n": "{:,}".format, "figure": _figure, "percent": _percent}
    environment.filters["sentence"] = _sentence
    return environment
