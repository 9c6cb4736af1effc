"""Judge the collocations against the counts: collocations/*.parquet -> checks/collocations.json, or stop."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import CollocationParams, MachineParams, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_json, require, write_json


def run(
    collocations: Path,
    ngrams: Path,
    n_tokens: int,
    out: Path,
    docs: DataDocs,
    *,
    params: CollocationParams,
    machine: MachineParams,
) -> dict[str, int]:
    """Write the record and return its totals.

    Args:
        collocations: the folder with bigrams.parquet and trigrams.parquet that is judged.
        ngrams: the folder with the counts of words, bigrams and trigrams.
        n_tokens: N of PMI.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.collocation_suite import collocation_suite
    from lexveil.checks.validation import validate

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        duckdb_session.view(con, "words", ngrams / "words.parquet")
        for name in ("bigram", "trigram"):
            duckdb_session.view(con, f"{name}s", collocations / f"{name}s.parquet")
            duckdb_session.view(con, f"{name}_counts", ngrams / f"{name}s.parquet")
        frame = duckdb_session.run(
            con, "checks/collocation_audit", n_tokens=n_tokens, min_count=params.min_count, min_pmi=params.min_pmi
        ).df()
    verdict = validate("collocations", collocation_suite(params.min_count, params.min_pmi), frame, docs)
    summary = {f"n_{ngrams}": int(n) for ngrams, n in zip(frame["ngrams"], frame["n_rows"], strict=True)}
    write_json(verdict.record(summary), out)
    return summary


def main() -> None:
    """Run the stage."""
    params = load_params()
    summary = run(
        require(paths.COLLOCATIONS, "build_collocations"),
        require(paths.NGRAMS, "count_ngrams"),
        read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"],
        paths.CHECKS / "collocations.json",
        DataDocs(paths.DATA_DOCS),
        params=params.collocations,
        machine=params.machine,
    )
    print(f"the collocations hold: {summary['n_bigrams']:,} bigrams, {summary['n_trigrams']:,} trigrams")


if __name__ == "__main__":
    stage_main(main)
