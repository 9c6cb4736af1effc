"""Tables for the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def show(value: Any) -> str:
    """Format a value: a fraction with three significant digits, a count with thousands
    separators.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_table(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the named columns of ``rows``; a cell that a row lacks stays empty."""
    table = [list(columns.values()), *([show(row.get(key)) for key in columns] for row in rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(columns))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def markdown(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table in Markdown; columns without any value are left out."""
    used = [key for key in columns if any(row.get(key) is not None for row in rows)]
    lines = [" | ".join(columns[key] for key in used), " | ".join("---" for _ in used)]
    lines += [" | ".join(show(row.get(key)) for key in used) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)
