"""Records and results as notebooks show them: HTML without scripts or styles from elsewhere, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FRAME = "border-left:4px solid {colour};padding:.2em 1em;margin:.4em 0"
GUARANTEED, NOTHING = "#2a7", "#c63"  # beside the words, which say the same


def framed(
    title: str,
    head: Sequence[str],
    lines: Iterable[str],
    facts: Iterable[tuple[str, object]] = (),
    *,
    holds: bool | None = None,
) -> str:
    """A title, some sentences, and a table of facts.

    Args:
        holds: whether anything is guaranteed; None where that is not the question.
    """
    colour = {True: GUARANTEED, False: NOTHING, None: "#888"}[holds]
    parts = [f"<strong>{escape(title)}</strong>"]
    parts += [f"<p>{escape(line)}</p>" for line in head]
    items = "".join(f"<li>{_cautious(line)}</li>" for line in lines)
    parts += [f"<ul>{items}</ul>"] if items else []
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in facts
        if value is not None
    )
    parts += [f"<table>{rows}</table>"] if rows else []
    return f'<div style="{FRAME.format(colour=colour)}">{"".join(parts)}</div>'


def _cautious(line: str) -> str:
    shown = escape(line.strip())
    return f"<strong>{shown}</strong>" if line.lstrip().startswith("CAUTION") else shown


def table_html(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of few rows; None is an empty cell."""
    head = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
