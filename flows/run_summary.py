"""The pages of a run in Prefect: a table of its stages and the report's headline figures. Counts and names, no text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from lexveil import paths
from lexveil.runtime.dvc_graph import Stage
from lexveil.runtime.run_events import StageResult

MOST_FIGURES = 60


def table_rows(results: Iterable[StageResult]) -> list[dict[str, object]]:
    """One row per stage, in the order in which they ended."""
    return [
        {"stage": result.stage, "state": result.state, "seconds": round(result.seconds, 1), "rows": result.rows}
        for result in results
    ]


def metrics_page() -> str:
    """Write the report's metrics as a Markdown table; empty if there is no report."""
    file = paths.REPORT / "metrics.json"
    try:
        metrics = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    figures = list(_flat(metrics))
    lines = [*_pages(), "", "| figure | value |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in figures[:MOST_FIGURES]]
    if len(figures) > MOST_FIGURES:
        lines += ["", f"{len(figures) - MOST_FIGURES} more in `{file}`."]
    return "\n".join(lines)


def _pages() -> list[str]:
    """Lines that lead to the pages of a run; a browser may refuse to follow a file's link, so the path is written."""
    pages = {"Report": paths.REPORT / "index.html", "Data Docs": paths.DATA_DOCS / "index.html"}
    return [
        f"- [{name}]({page.absolute().as_uri()}): `{page.absolute()}`" for name, page in pages.items() if page.exists()
    ]


def stage_rows(stage: Stage) -> str:
    """Return how many rows the Parquet outputs of a stage have, from their footers."""
    files = [
        file
        for out in stage.outs
        for file in ([out] if out.suffix == ".parquet" else sorted(out.glob("*.parquet")) if out.is_dir() else [])
    ][:6]
    if not files:
        return ""
    import pyarrow.parquet as pq

    return "; ".join(f"{file.stem} {pq.read_metadata(file).num_rows:,}" for file in files)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return
    else:
        yield name, f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
