"""Judge the sampled corpus: corpus/{sample,tokens,words}.parquet -> checks/corpus.json, or stop."""

from __future__ import annotations

from pathlib import Path

from tasks.io import duck, paths
from tasks.io.docs import DataDocs
from tasks.io.params import MachineParams, load_params
from tasks.io.stage import stage_main
from tasks.io.tables import require, write_json


def run(sample: Path, tokens: Path, words: Path, out: Path, docs: DataDocs, machine: MachineParams) -> dict[str, int]:
    """Write the record and return its totals.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from tasks.expectations.corpus import corpus_suite
    from tasks.expectations.run import validate

    out.unlink(missing_ok=True)
    with duck.session(machine) as con:
        duck.view(con, "sample", sample)
        duck.view(con, "tokens", tokens)
        duck.view(con, "words", words)
        frame = duck.run(con, "corpus_totals").df()
    verdict = validate("corpus", corpus_suite(), frame, docs)
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
    summary = run(
        require(paths.SAMPLE, "sample_corpus"),
        require(paths.TOKENS, "sample_corpus"),
        require(paths.WORDS, "sample_corpus"),
        paths.CHECKS / "corpus.json",
        DataDocs(paths.DATA_DOCS),
        load_params().machine,
    )
    print(f"the corpus holds: {summary['n_documents']:,} documents, {summary['n_tokens']:,} tokens")


if __name__ == "__main__":
    stage_main(main)
