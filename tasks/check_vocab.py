"""Pipeline stage that checks how many words of the documents the vocabularies cover, and fails if
the share is too low: documents, embeddings -> checks/coverage.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from lexveil.base import paths
from lexveil.base.runtime.tables import write_json
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.lexicons import LexiconOf, load_lexicon, text_words
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.release.checks.data_docs import DataDocs


def run(
    params: Params,
    machine: MachineParams,
    documents: pa.Table,
    lexicon_of: LexiconOf,
    out: Path,
    docs: DataDocs,
) -> dict[str, Any]:
    """Check the vocabulary coverage, write the record of the check to ``out``, and return the
    coverage by data set and segmentation.

    Raises:
        CheckFailedError: if an expectation does not hold; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.vocabulary_suite import vocab_suite
    from lexveil.release.checks.validation import validate

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        con.register("text_words", text_words(documents, params.grid.segmentations, lexicon_of))
        frame = duckdb_session.run(con, "checks/vocab_coverage").df()
    verdict = validate("vocab", vocab_suite(params.checks.min_coverage), frame, docs)
    coverage: dict[str, Any] = {}
    for row in frame.to_dict("records"):
        coverage.setdefault(str(row.pop("dataset")), {})[str(row.pop("segmentation"))] = row
    write_json(verdict.record({"coverage": coverage}), out)
    return coverage


def main() -> None:
    """Run this stage of the DVC pipeline: check the vocabulary coverage."""
    params = load_params()
    files = paths.CHECKS / "coverage.json", DataDocs(paths.DATA_DOCS)
    coverage = run(
        params,
        load_configuration().machine,
        load_documents(),
        lambda name: load_lexicon(name, Path(), params.model.language),
        *files,
    )
    for dataset, by_segmentation in coverage.items():
        shares = ", ".join(
            f"{name} {figures['coverage']:.1%}" for name, figures in by_segmentation.items()
        )
        print(f"known words of {dataset}: {shares}")


if __name__ == "__main__":
    stage_main(main)
