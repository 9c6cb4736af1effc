"""Pipeline stage that checks the rewritten documents of every run of the grid, and of the clean
baseline: private/**/{documents,ledger}.parquet -> checks/outputs.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from lexveil.base import paths
from lexveil.base.levels import stage_name
from lexveil.base.runtime.tables import read_json, require, write_json
from lexveil.core.accounting.budgets import SEGMENTATION_OF
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.levels import (
    PER_TEXT,
    epsilon_of_sentences,
    made_runs,
    made_sentence_runs,
    n_bank_sentences,
)
from lexveil.io.config import CLEAN, GridParams, MachineParams, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import Progress, stage_main
from lexveil.release.checks.data_docs import DataDocs

if TYPE_CHECKING:
    import pandas as pd

    from lexveil.release.checks.validation import Verdict

NO_PLAN = (
    "create or replace temp view plan as select dataset, doc_id, field, 0.0 as budget "
    "from ledger limit 0"
)
TOTALS = ("n_tokens_in", "n_tokens_out", "n_words_out", "n_dropped", "n_unprotected")


@dataclass(frozen=True, slots=True)
class WordOutput:
    """The output of one run that rewrites texts token by token, with the files against which it is
    checked.

    Attributes:
        name: name of the run, mechanism/strategy/epsilon.
        stage: name in DVC of the stage that writes the output.
        folder: folder with documents.parquet and tokens.parquet.
        plan: budget plan of the run; None for the clean baseline, which may spend nothing.
        n_vocabulary: number of rows of the strategy's embedding; 0 for the clean baseline.
    """

    name: str
    stage: str
    folder: Path
    plan: Path | None
    n_vocabulary: int


def runs_of(grid: GridParams) -> list[WordOutput]:
    """Return the outputs to check: the clean baseline (texts that were not rewritten), followed by
    every run of params.yaml that was made. Outputs of another grid are ignored.
    """
    sizes: dict[str, int] = {
        strategy: read_json(paths.embedding(segmentation) / "meta.json", "train_embeddings")[
            "n_tokens"
        ]
        for strategy, segmentation in SEGMENTATION_OF.items()
        if strategy in grid.strategies
    }
    clean = require(paths.private(*CLEAN), "baseline")
    baseline = WordOutput("/".join(map(str, CLEAN)), "baseline", clean, None, 0)
    return [baseline] + [
        WordOutput(
            "/".join(map(str, run)),
            stage_name("privatize", *run),
            require(paths.private(*run), "privatize"),
            require(paths.plan(*run), "plan_budgets"),
            sizes[run[1]],
        )
        for run in made_runs(grid.runs())
    ]


@dataclass(frozen=True, slots=True)
class SentenceOutput:
    """The output of one run with strategy S5, which replaces texts by sentences of a sentence bank.

    Attributes:
        name, stage, folder: as in ``WordOutput``.
        epsilon: the epsilon of each sentence.
    """

    name: str
    stage: str
    folder: Path
    epsilon: float


def sentence_outputs(grid: GridParams) -> list[SentenceOutput]:
    """Return the output of every run with strategy S5 that was made."""
    return [
        SentenceOutput(
            "/".join(map(str, run)),
            stage_name("privatize", *run),
            require(paths.private(*run), stage_name("privatize", *run)),
            epsilon_of_sentences(run[2]),
        )
        for run in made_sentence_runs(grid.sentence_runs())
    ]


def judge_sentences(
    con: duckdb.DuckDBPyConnection, outputs: Sequence[SentenceOutput], docs: DataDocs
) -> Iterator[tuple[str, pd.DataFrame, Verdict]]:
    """Check each output of strategy S5 (sentences), and yield the output's name, the checked rows
    and the verdict. ``con`` must have the input documents.
    """
    from lexveil.lab.checks.sentence_output_suite import sentence_output_suite
    from lexveil.release.checks.validation import validate

    for output in outputs:
        duckdb_session.view(con, "documents", output.folder / "documents.parquet")
        duckdb_session.view(con, "ledger", output.folder / "tokens.parquet")
        wanted = {"n_bank": n_bank_sentences(), "per_text": PER_TEXT, "epsilon": output.epsilon}
        frame = duckdb_session.run(con, "checks/sentence_outputs", **wanted).df()
        suite = sentence_output_suite(output.stage)
        yield output.name, frame, validate(f"outputs/{output.name}", suite, frame, docs)


def totals_of(frame: pd.DataFrame) -> dict[str, int]:
    """Return the totals of one checked output."""
    return {"n_documents": len(frame)} | {name: int(frame[name].sum()) for name in TOTALS}


def run(
    inputs: pa.Table,
    runs: Sequence[WordOutput],
    out: Path,
    docs: DataDocs,
    machine: MachineParams,
    sentences: Sequence[SentenceOutput] = (),
) -> dict[str, dict[str, int]]:
    """Check the outputs of all runs, write the record of the check to ``out``, and return the
    totals of each run.

    Args:
        inputs: the input documents: dataset, doc_id, split, text, text_b, label, attribute.
        sentences: the outputs of strategy S5.

    Raises:
        CheckFailedError: at the first run in which an expectation does not hold; ``out`` then does
            not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.output_suite import output_suite
    from lexveil.release.checks.validation import merge, validate

    out.unlink(missing_ok=True)
    docs.forget("outputs")
    progress = Progress("check outputs", len(runs), "runs")
    verdicts = []
    totals = {}
    with duckdb_session.session(machine) as con:
        con.register("inputs", inputs)
        for output in runs:
            duckdb_session.view(con, "documents", output.folder / "documents.parquet")
            duckdb_session.view(con, "ledger", output.folder / "tokens.parquet")
            if output.plan is None:
                con.execute(NO_PLAN)
            else:
                duckdb_session.view(con, "plan", output.plan)
            frame = duckdb_session.run(
                con, "checks/output_lengths", n_vocabulary=output.n_vocabulary
            ).df()
            suite = output_suite(output.stage, is_clean=output.plan is None)
            verdicts.append(validate(f"outputs/{output.name}", suite, frame, docs))
            totals[output.name] = totals_of(frame)
            progress.advance(1)
        for name, frame, verdict in judge_sentences(con, sentences, docs):
            verdicts.append(verdict)
            totals[name] = totals_of(frame)
    write_json(merge("outputs", verdicts).record({"runs": totals}), out)
    return totals


def main() -> None:
    """Run this stage of the DVC pipeline: check the outputs of all runs."""
    params = load_params()
    totals = run(
        load_documents(),
        runs_of(params.grid),
        paths.CHECKS / "outputs.json",
        DataDocs(paths.DATA_DOCS),
        load_configuration().machine,
        sentence_outputs(params.grid),
    )
    n_tokens = sum(output["n_tokens_out"] for output in totals.values())
    print(f"the outputs are valid: {len(totals)} runs, {n_tokens:,} tokens")


if __name__ == "__main__":
    stage_main(main)
