"""Judge the collocations against the counts: collocations/*.parquet -> checks/collocations.json, or stop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.artifacts.base_model import base_collocations, find_base
from lexveil.checks.data_docs import DataDocs
from lexveil.config import CollocationParams, MachineParams, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_json, require, write_json

OF_BASE = pa.schema(
    [(f"{place}_word", pa.string()) for place in ("first", "second", "third")]
    + [("count", pa.int64()), ("pmi_bits", pa.float64())]
)


def run(
    collocations: Path,
    ngrams: Path,
    n_tokens: int,
    out: Path,
    docs: DataDocs,
    *,
    params: CollocationParams,
    machine: MachineParams,
    base: Mapping[str, pa.Table] | None = None,
) -> dict[str, int]:
    """Write the record and return its totals.

    Args:
        collocations: the folder with bigrams.parquet and trigrams.parquet that is judged.
        ngrams: the folder with the counts of words, bigrams and trigrams.
        n_tokens: N of PMI.
        base: by table, the collocations of the base of the training, if there is one: the corpus then need have none.

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
            added = collocations / f"base_{name}s.parquet"
            con.register(f"base_{name}s", _padded(pq.read_table(added) if added.exists() else None))
        con.register("base", pa.concat_tables([_padded(None), *map(_padded, (base or {}).values())]))
        frame = duckdb_session.run(
            con,
            "checks/collocation_audit",
            n_needed=0 if base else 1,
            n_tokens=n_tokens,
            min_count=params.min_count,
            min_pmi=params.min_pmi,
        ).df()
    verdict = validate("collocations", collocation_suite(params.min_count, params.min_pmi), frame, docs)
    summary = {f"n_{ngrams}": int(n) for ngrams, n in zip(frame["ngrams"], frame["n_rows"], strict=True)}
    if base:
        of_base = zip(frame["ngrams"], frame["n_of_base"], strict=True)
        summary |= {f"n_{ngrams}_of_base": int(n) for ngrams, n in of_base}
    write_json(verdict.record(summary), out)
    return summary


def _padded(table: pa.Table | None) -> pa.Table:
    """The rows of a table of collocations, or none, with a third word."""
    if table is None:
        return OF_BASE.empty_table()
    if "third_word" not in table.column_names:
        table = table.append_column("third_word", pa.nulls(table.num_rows, pa.string()))
    return table.select(OF_BASE.names).cast(OF_BASE)


def main() -> None:
    """Run the stage."""
    params = load_params()
    model = find_base(params.embeddings)
    summary = run(
        require(paths.COLLOCATIONS, "build_collocations"),
        require(paths.NGRAMS, "count_ngrams"),
        read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"],
        paths.CHECKS / "collocations.json",
        DataDocs(paths.DATA_DOCS),
        params=params.collocations,
        machine=params.machine,
        base=None if model is None else base_collocations(params.embeddings, model),
    )
    print(f"the collocations hold: {summary['n_bigrams']:,} bigrams, {summary['n_trigrams']:,} trigrams")


if __name__ == "__main__":
    stage_main(main)
