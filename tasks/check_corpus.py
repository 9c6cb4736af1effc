"""Judge the sampled corpus: corpus/{sample,tokens,words}.parquet -> checks/corpus.json, or stop."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.checks.data_docs import DataDocs
from lexveil.config import NO_BASE, MachineParams, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import require, write_json


def run(
    sample: Path,
    tokens: Path,
    words: Path,
    out: Path,
    docs: DataDocs,
    machine: MachineParams,
    *,
    may_be_empty: bool = False,
) -> dict[str, int]:
    """Write the record and return its totals.

    Args:
        may_be_empty: as in ``corpus_suite``.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.corpus_suite import corpus_suite
    from lexveil.checks.validation import validate

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        duckdb_session.view(con, "sample", sample)
        duckdb_session.view(con, "tokens", tokens)
        duckdb_session.view(con, "words", words)
        frame = duckdb_session.run(con, "checks/corpus_totals").df()
    verdict = validate("corpus", corpus_suite(may_be_empty=may_be_empty), frame, docs)
    summary = {
        "n_documents": len(frame),
        "n_blank_documents": int((frame["is_readable"] == 0).sum()),
        "n_sentences": int(frame["n_sentences"].sum()),
        "n_tokens": int(frame["n_tokens"].sum()),
    }
    write_json(verdict.record(summary), out)
    return summary


def main() -> None:
    """Run the stage."""
    params = load_params()
    summary = run(
        require(paths.SAMPLE, "sample_corpus"),
        require(paths.TOKENS, "sample_corpus"),
        require(paths.WORDS, "sample_corpus"),
        paths.CHECKS / "corpus.json",
        DataDocs(paths.DATA_DOCS),
        params.machine,
        may_be_empty=params.embeddings.base != NO_BASE,
    )
    print(f"the corpus holds: {summary['n_documents']:,} documents, {summary['n_tokens']:,} tokens")


if __name__ == "__main__":
    stage_main(main)
