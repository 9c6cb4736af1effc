"""Pipeline stage that checks the sampled corpus, and fails if it is not valid:
corpus/{sample,tokens,words}.parquet -> checks/corpus.json.
"""

from __future__ import annotations

from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.tables import require, write_json
from lexveil.io.config import NO_BASE, MachineParams, Params, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.release.checks.data_docs import DataDocs


def run(params: Params, machine: MachineParams, out: Path, docs: DataDocs) -> dict[str, int]:
    """Check the sampled corpus, write the record of the check to ``out``, and return its totals.
    With a base model the corpus may be empty.

    Raises:
        CheckFailedError: if an expectation does not hold; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.corpus_suite import corpus_suite
    from lexveil.release.checks.validation import validate

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        for file in (paths.SAMPLE, paths.TOKENS, paths.WORDS):
            duckdb_session.view(con, file.stem, require(file, "sample_corpus"))
        frame = duckdb_session.run(con, "checks/corpus_totals").df()
    verdict = validate(
        "corpus", corpus_suite(may_be_empty=params.embeddings.base != NO_BASE), frame, docs
    )
    summary = {
        "n_documents": len(frame),
        "n_blank_documents": int((frame["is_readable"] == 0).sum()),
        "n_sentences": int(frame["n_sentences"].sum()),
        "n_tokens": int(frame["n_tokens"].sum()),
    }
    write_json(verdict.record(summary), out)
    return summary


def main() -> None:
    """Run this stage of the DVC pipeline: check the sampled corpus."""
    summary = run(
        load_params(),
        load_configuration().machine,
        paths.CHECKS / "corpus.json",
        DataDocs(paths.DATA_DOCS),
    )
    print(
        f"the corpus is valid: {summary['n_documents']:,} documents, {summary['n_tokens']:,} tokens"
    )


if __name__ == "__main__":
    stage_main(main)
