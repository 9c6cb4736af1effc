"""Pipeline stage that checks the candidate sentences of the sentence bank, and fails if they are
not valid: sentences.parquet -> checks/sentences.json.
"""

from __future__ import annotations

from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.tables import require, write_json
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.lab.data.sentence_choice import choice_of
from lexveil.release.checks.data_docs import DataDocs


def run(
    params: Params, machine: MachineParams, sentences: Path, out: Path, docs: DataDocs
) -> dict[str, int]:
    """Check the sentences, write the record of the check to ``out``, and return its totals. A
    corpus may have no suitable sentence.

    Raises:
        CheckFailedError: if an expectation does not hold; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.sentence_suite import sentence_suite
    from lexveil.release.checks.validation import validate

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        duckdb_session.view(con, "sentences", require(sentences, "collect_sentences"))
        frame = duckdb_session.run(con, "checks/bank_sentences").df()
    choice = choice_of(params.sentences, params.seed)
    suite = sentence_suite(choice.size, **choice.limits())
    verdict = validate("sentences", suite, frame, docs)
    summary = {"n_sentences": len(frame), "n_words": int(frame["n_words"].sum())}
    write_json(verdict.record(summary), out)
    return summary


def main() -> None:
    """Run this stage of the DVC pipeline: check the sentences."""
    docs = DataDocs(paths.DATA_DOCS)
    machine = load_configuration().machine
    out = paths.CHECKS / "sentences.json"
    summary = run(load_params(), machine, paths.SENTENCES, out, docs)
    print(f"the sentences are valid: {summary['n_sentences']:,} with {summary['n_words']:,} words")


if __name__ == "__main__":
    stage_main(main)
