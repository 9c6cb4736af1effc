"""Plausible deniability: N_w and S_w of every mechanism over epsilon, in the manner of 1-Diffractor Figure 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.errors import CheckFailed
from lexveil.report import epsilon_units, formatting
from lexveil.report.figures import SpreadSeries
from lexveil.report.table import Column, Table

QUARTILES = ("q25", "median", "q75")


@dataclass(frozen=True, slots=True)
class MechanismDeniability:
    """The statistics of one mechanism in one segmentation.

    Attributes:
        file: where they lie, as messages call it.
        record: mechanism, segmentation, n_vocabulary, n_shared, word_rows, statistics (one row per epsilon).
    """

    file: str
    record: Mapping[str, Any]

    @property
    def mechanism(self) -> str:
        """Which mechanism."""
        return str(self.record["mechanism"])

    @property
    def segmentation(self) -> str:
        """Which segmentation."""
        return str(self.record["segmentation"])

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row per epsilon, ascending."""
        return list(self.record["statistics"])


def require_same_words(measured: Sequence[MechanismDeniability]) -> None:
    """See that within a segmentation all statistics are of the same words.

    Raises:
        CheckFailed: if they are not, and so cannot be compared.
    """
    first: dict[str, MechanismDeniability] = {}
    for one in measured:
        known = first.setdefault(one.segmentation, one)
        if known.record["word_rows"] != one.record["word_rows"]:
            raise CheckFailed(
                f"{known.file} and {one.file} are of different words, so they cannot be compared. Run "
                "`dvc repro --force measure_deniability`"
            )


def heading(measured: MechanismDeniability, strategies: Sequence[str]) -> str:
    """The segmentation, the strategies that use it, and its words: "gst (S2 and S3): 100 of 4,242 words"."""
    own = [name for name in strategies if SEGMENTATION_OF[name] == measured.segmentation]
    n_words, n_shared = len(measured.record["word_rows"]), measured.record["n_shared"]
    return f"{measured.segmentation} ({formatting.listed(own)}): {n_words:,} of {n_shared:,} words"


def series(
    measured: Sequence[MechanismDeniability], segmentation: str, statistic: str, computed: str
) -> list[SpreadSeries]:
    """One line per mechanism, in the order given; an epsilon that was refused has no point.

    Args:
        statistic: the sampled one, "n_w" or "s_w".
        computed: its expectation, "n_w_exact" or "s_w_expected".
    """
    lines = []
    for one in measured:
        if one.segmentation != segmentation:
            continue
        rows = [row for row in one.rows if row[statistic] is not None]
        lines.append(
            SpreadSeries(
                one.mechanism,
                [row["epsilon"] for row in rows],
                [row[statistic]["mean"] for row in rows],
                [row[statistic]["q25"] for row in rows],
                [row[statistic]["q75"] for row in rows],
                [row[computed]["mean"] for row in rows if row[computed] is not None],
            )
        )
    return lines


def deniability_table(measured: Sequence[MechanismDeniability], n_draws: int) -> Table:
    """N_w and S_w per mechanism, segmentation and epsilon: mean and quartiles over the words, and what is expected."""

    def of(row: Mapping[str, Any], statistic: str, names: Sequence[str]) -> list[float | None]:
        return [None if row[statistic] is None else row[statistic][name] for name in names]

    def columns(statistic: str, computed: str, head: str, group: str) -> list[Column]:
        return [
            Column(f"{statistic}_mean", "Mean", formatting.one, group),
            *(
                Column(f"{statistic}_{name}", shown, formatting.one, group)
                for name, shown in zip(QUARTILES, ("25%", "Median", "75%"), strict=True)
            ),
            Column(f"{computed}_mean", head, formatting.one, group),
        ]

    return Table(
        "deniability",
        f"N_w and S_w in {n_draws:,} draws of each word",
        [
            Column("mechanism", "Mechanism"),
            Column("segmentation", "Segmentation"),
            Column("epsilon", "ε", formatting.epsilon),
            *columns("n_w", "n_w_exact", "Exact", f"N_w, draws of {n_draws:,}"),
            *columns("s_w", "s_w_expected", "Expected", "S_w, words"),
            Column("epsilon_unit", "ε is in"),
        ],
        [
            (
                one.mechanism,
                one.segmentation,
                row["epsilon"],
                *of(row, "n_w", ("mean", *QUARTILES)),
                *of(row, "n_w_exact", ("mean",)),
                *of(row, "s_w", ("mean", *QUARTILES)),
                *of(row, "s_w_expected", ("mean",)),
                epsilon_units.unit(one.mechanism),
            )
            for one in measured
            for row in one.rows
        ],
        "Means and quartiles are over the words. Exact and expected are means too, computed from the law of the "
        "mechanism for the same words; mechanisms whose law has no closed form have none.",
    )


def refusals(measured: Sequence[MechanismDeniability]) -> list[tuple[str, str]]:
    """Which epsilons were refused, and what the mechanism says, once per mechanism and segmentation."""
    said = []
    for one in measured:
        refused = [row for row in one.rows if row["refused"] is not None]
        if refused:
            at = formatting.listed([formatting.epsilon(row["epsilon"]) for row in refused])
            said.append((f"{one.mechanism}, {one.segmentation}, ε {at}", str(refused[0]["refused"])))
    return said
