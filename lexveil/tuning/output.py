"""What `lexveil tune` writes and prints: tuning.json, tables, figures and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lexveil.evaluation.inference_error import Tradeoff
from lexveil.report import formatting
from lexveil.report.epsilon_units import shared_unit
from lexveil.report.table import to_csv
from lexveil.report.tuning_page import (
    SHOWN,
    Frontier,
    error_over_epsilon,
    error_over_loss,
    page,
    standalone,
)
from lexveil.runtime.tables import atomic_file, write_json
from lexveil.tuning.candidates import Candidate, Row

COLUMNS = (
    "mechanism", "t", "epsilon", "inference_error", "inference_error_sd", "utility_loss", "utility_loss_sd", "n_runs"
)  # fmt: skip
_FEW_T = (0.0, 0.25, 0.5, 0.75, 1.0)  # what a figure shows of many


def as_row(candidate: Candidate, tradeoff: Tradeoff) -> dict[str, Any]:
    """A trade-off under COLUMNS, as JSON can carry it."""
    values = (
        candidate.mechanism, candidate.t, tradeoff.epsilon, tradeoff.inference_error, tradeoff.inference_error_sd,
        tradeoff.utility_loss, tradeoff.utility_loss_sd, tradeoff.n_runs,
    )  # fmt: skip
    # One run has no deviation, and JSON no NaN.
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in zip(COLUMNS, values, strict=True)
    }


def _shown(found: dict[str, list[Row]], chosen: Sequence[Row]) -> list[Candidate]:
    """What a figure has room for: of many t a few, and those that were chosen."""
    every = list({id(row): row for rows in found.values() for row, _ in rows}.values())
    if len(every) <= SHOWN:
        return every
    wanted = {id(candidate) for candidate, _ in chosen}
    few = [candidate for candidate in every if id(candidate) in wanted or candidate.t is None or candidate.t in _FEW_T]
    spare = [candidate for candidate in few if id(candidate) not in wanted]
    return [candidate for candidate in few if id(candidate) in wanted or candidate in spare[: SHOWN - len(wanted)]]


def _lines(found: dict[str, list[Row]], candidates: Sequence[Candidate]) -> list[Frontier]:
    lines = []
    for candidate in candidates:
        own = [tradeoff for rows in found.values() for row, tradeoff in rows if row is candidate]
        columns = zip(
            *(
                (
                    one.epsilon, one.utility_loss, one.inference_error, np.nan_to_num(one.utility_loss_sd),
                    np.nan_to_num(one.inference_error_sd),
                )
                for one in own
            ),
            strict=True,
        )  # fmt: skip
        lines.append(Frontier(candidate.label, *map(list, columns)))
    return lines


def write(result: dict[str, Any], found: dict[str, list[Row]], chosen: Sequence[Row], out: Path) -> None:
    """All files of the folder, each whole or not at all; what else is in it stays."""
    lines = _lines(found, _shown(found, chosen))
    rings = [(tradeoff.utility_loss, tradeoff.inference_error) for _, tradeoff in chosen]
    titles = "Inference error over utility loss (larger points: larger ε)", "Inference error over ε"
    figures = [
        error_over_loss("frontier", titles[0], lines, max_loss=result["max_loss"], chosen=rings),
        error_over_epsilon("epsilon", titles[1], lines, unit=shared_unit(list(found))),
    ]
    style = (resources.files("lexveil.report") / "page.css").read_text(encoding="utf-8")
    notes = [*_about(result), *_choices(result), *_warnings(result)]
    html = page("Tuning", style, notes, list(zip(titles, figures, strict=True)), _cells(_few(result)))
    for file, text in (
        ("frontier.svg", standalone(figures[0])),
        ("epsilon.svg", standalone(figures[1])),
        ("tuning.html", html),
        ("frontier.csv", to_csv(COLUMNS, [list(row.values()) for row in result["frontier"]])),
    ):
        with atomic_file(out / file) as partial:
            partial.write_text(text, encoding="utf-8")
    write_json(result, out / "tuning.json")


def as_table(result: dict[str, Any]) -> list[str]:
    """The result as lines for people."""
    cells = _cells(_few(result))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return [*_about(result), *table, *_choices(result), *_warnings(result)]


def _few(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the frontier that people are shown: of many t a few, and those that were chosen."""
    rows: list[dict[str, Any]] = result["frontier"]
    if len({(row["mechanism"], row["t"]) for row in rows}) <= SHOWN:
        return rows
    chosen = {(row["mechanism"], row["t"]) for row in result["chosen"].values() if row["none"] is None}
    return [row for row in rows if row["t"] is None or row["t"] in _FEW_T or (row["mechanism"], row["t"]) in chosen]


def _cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    head = ["mechanism", "t", "ε", "inference error", "utility loss"]
    return [head] + [
        [
            row["mechanism"],
            formatting.MISSING if row["t"] is None else f"{row['t']:g}",
            f"{row['epsilon']:g}",
            *(_mean_sd(row, name) for name in ("inference_error", "utility_loss")),
        ]
        for row in rows
    ]


def _mean_sd(row: dict[str, Any], name: str) -> str:
    if row["n_runs"] == 0:
        return f"{row[name]:.4f} (exact)"
    return f"{row[name]:.4f}" if row[f"{name}_sd"] is None else f"{row[name]:.4f} ± {row[f'{name}_sd']:.4f}"


def _about(result: dict[str, Any]) -> list[str]:
    words, space = result["words"], result["space"]
    labels = ", ".join(f"{count:,} of label {name}" for name, count in words["labels"].items())
    return [
        f"{words['used']:,} of {words['read']:,} words ({labels}); left out: {words['unknown']:,} that "
        f"{space['folder']} does not know, {words['repeated']:,} repeated, {words['with_several_labels']:,} with "
        "several labels"
    ]


def _choices(result: dict[str, Any]) -> list[str]:
    said = []
    for name, row in result["chosen"].items():
        if row["none"] is not None:
            said.append(f"{name}: nothing chosen; {row['none']}")
            continue
        t = "" if row["t"] is None or name == "madlib" else f", t = {row['t']:g}"
        said.append(
            f"{name}: ε = {row['epsilon']:g}{t}, for a utility loss of at most {result['max_loss']:g}: inference error "
            f"{_mean_sd(row, 'inference_error')}, utility loss {_mean_sd(row, 'utility_loss')}"
        )
        best = result["of_largest_error"][name]
        if best["inference_error"] > row["inference_error"]:
            t = "" if best["t"] is None or name == "madlib" else f", t = {best['t']:g}"
            weaker = "weaker" if best["epsilon"] > row["epsilon"] else "stronger"
            said.append(
                f"{name}: of all that was measured the inference error is largest at ε = {best['epsilon']:g}{t}: "
                f"{_mean_sd(best, 'inference_error')}, utility loss {_mean_sd(best, 'utility_loss')}; the guarantee "
                f"there is {weaker}"
            )
    return said


def _warnings(result: dict[str, Any]) -> list[str]:
    space = result["space"]
    return [
        f"± is one standard deviation over {result['runs']} runs of {result['draws']} draws of each word."
        if result["runs"] > 1
        else f"One run of {result['draws']} draws of each word: how much runs differ is not known.",
        f"{result['epsilon_in']} It is measured in the embedding {space['name']}@{space['hash']}: the same number "
        "means something else in any other, also in one trained anew.",
        f"An experiment on public words with seed {result['seed']}: no privacy of any text is claimed by it.",
        *(f"{name} has no guarantee: {why}." for name, why in result["no_guarantee"].items() if why is not None),
    ]
