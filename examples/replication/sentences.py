"""Example texts of the papers: the segmentations of Figure 1, and the outputs of our runs for the
other examples.

Sources: CLMLDP Figure 1 and Table 9, 1-Diffractor Tables 6 and 7. Their inputs are in
sentences.csv, one sentence of each; their outputs are in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow.parquet as pq

from examples.replication.literature import ANY
from examples.replication.measured import LISTS, Measured, MeasureKey
from lexveil.base import paths
from lexveil.core.accounting.budgets import BY_WORDS, SEGMENTATION_OF
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.config import CLEAN
from lexveil.lab.collocations.lookup import of_text
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.records import Key
from lexveil.lab.report.table import Column, Table

DATASET = "sentences"
FIGURE_1 = "clmldp-figure-1"
BUDGET = 10.0  # budget of the document in Figure 1


@dataclass(frozen=True, slots=True)
class ExampleTable:
    """Table of the outputs of one text in a paper.

    Attributes:
        paper: name of the paper.
        number: number of the table.
        doc_id: id of its input in sentences.csv.
        epsilons: epsilons that the table shows.
        n_printed: number of outputs that the table prints.
    """

    paper: str
    number: str
    doc_id: str
    epsilons: tuple[float, ...]
    n_printed: int


TABLES = (
    # four strategies at five ε
    ExampleTable("CLMLDP", "9", "clmldp-table-9", (0.1, 0.5, 1.0, 5.0, 10.0), 20),
    # two mechanisms on three list sets at three ε
    ExampleTable("1-Diffractor", "6", "diffractor-table-6", (0.1, 1.0, 3.0), 18),
    # two mechanisms on L0 and five others at four ε
    ExampleTable("1-Diffractor", "7", "diffractor-table-7", (0.1, 1.0, 10.0, 50.0), 28),
)


def figure_1(text: str) -> tuple[Measured, Table]:
    """Segment the text of CLMLDP Figure 1 by each strategy; return the tokens, their PMI, and the ε
    of each token.
    """
    cuts = cast(list[Any], of_text(text)["sentences"])[0]
    n_words = len(cuts["word"]["tokens"])
    known: Measured = {}
    rows = list[dict[str, object]]()
    for strategy, segmentation in SEGMENTATION_OF.items():
        tokens = [token.replace(" ", "_") for token in cuts[segmentation]["tokens"]]
        share = BUDGET / (n_words if strategy in BY_WORDS else len(tokens))
        figures = {"sentence_tokens": float(len(tokens)), "token_budget": share}
        if segmentation != "word":
            figures["sentence_pmi"] = cuts[segmentation]["total_pmi_bits"]
        for measure, value in figures.items():
            key = MeasureKey(measure, frozenset([DATASET]), ANY, "", strategy, BUDGET)
            known[key] = MeanSd(value, None)
        pmi = figures.get("sentence_pmi")
        rows.append(
            {
                "strategy": strategy,
                "tokens": " · ".join(tokens),
                "n": str(len(tokens)),
                "pmi": None if pmi is None else f"{pmi:.2f}",
                "budget": f"{share:.2f}",
            }
        )
    heads = {"strategy": "strategy", "tokens": "cut", "n": "tokens", "pmi": "PMI, bits"}
    columns = [Column(key, head) for key, head in heads.items()]
    columns.append(Column("budget", f"ε of a token of {BUDGET:g}"))
    return known, Table("figure-1", columns, rows)


def texts_of(key: Key) -> dict[str, str]:
    """Return the example sentences as one run wrote them, by id."""
    table = pq.read_table(
        paths.private(*key) / "documents.parquet",
        columns=["dataset", "doc_id", "text"],
        filters=[("dataset", "=", DATASET)],
    )
    return dict(
        zip(table.column("doc_id").to_pylist(), table.column("text").to_pylist(), strict=True)
    )


def outputs(keys: Sequence[Key], doc_id: str) -> Table:
    """Return a table of the outputs of every run for one sentence."""
    rows = list[dict[str, object]]()
    for mechanism, strategy, noise in keys:
        text = texts_of((mechanism, strategy, noise))[doc_id]
        rows.append(
            {
                "mechanism": mechanism,
                "strategy": strategy,
                "epsilon": f"{noise.number:g}",
                "text": text.replace("|", "\\|"),
            }
        )
    rows.insert(
        0, {"mechanism": "", "strategy": "", "epsilon": "", "text": texts_of(CLEAN)[doc_id]}
    )
    heads = {"mechanism": "mechanism", "strategy": "strategy", "epsilon": "ε", "text": "text"}
    return Table("outputs", [Column(key, head) for key, head in heads.items()], rows)


def runs_of_table(keys: Sequence[Key], table: ExampleTable) -> list[Key]:
    """Return the runs that a paper's table of examples shows."""
    shown = [key for key in keys if key[2].number in table.epsilons]
    if table.paper == "CLMLDP":
        return [key for key in shown if key[0] == "madlib"]
    on_lists = [key for key in shown if base_of(key[0]) in LISTS]
    if table.number == "6":
        return on_lists
    first = [key for key in on_lists if key[0].endswith("listsL0")]
    return first + [key for key in shown if key not in on_lists]
