"""Pipeline stage that checks the collocations against the counts, and fails if they are
inconsistent: collocations/*.parquet -> checks/collocations.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import read_json, require, write_json
from lexveil.io.artifacts.base_model import base_collocations, find_base
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.release.checks.data_docs import DataDocs

OF_BASE = pa.schema(
    [(f"{place}_word", pa.string()) for place in ("first", "second", "third")]
    + [("count", pa.int64()), ("pmi_bits", pa.float64())]
)


def run(
    params: Params,
    machine: MachineParams,
    out: Path,
    docs: DataDocs,
    base: Mapping[str, pa.Table] | None = None,
) -> dict[str, int]:
    """Check the collocations, write the record of the check to ``out``, and return its totals.

    Args:
        base: collocations of the base model from which training starts, by table, if there is a
            base model. The corpus may then have no collocations.

    Raises:
        CheckFailedError: if an expectation does not hold; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.collocation_suite import collocation_suite
    from lexveil.release.checks.validation import validate

    out.unlink(missing_ok=True)
    collocations = require(paths.COLLOCATIONS, "build_collocations")
    ngrams = require(paths.NGRAMS, "count_ngrams")
    limits = {"min_count": params.collocations.min_count, "min_pmi": params.collocations.min_pmi}
    with duckdb_session.session(machine) as con:
        duckdb_session.view(con, "words", ngrams / "words.parquet")
        for name in ("bigram", "trigram"):
            duckdb_session.view(con, f"{name}s", collocations / f"{name}s.parquet")
            duckdb_session.view(con, f"{name}_counts", ngrams / f"{name}s.parquet")
            added = collocations / f"base_{name}s.parquet"
            con.register(
                f"base_{name}s", _padded(*[pq.read_table(added)] if added.exists() else [])
            )
        con.register("base", _padded(*(base or {}).values()))
        frame = duckdb_session.run(
            con,
            "checks/collocation_audit",
            n_needed=0 if base else 1,
            n_tokens=read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"],
            **limits,
        ).df()
    verdict = validate("collocations", collocation_suite(**limits), frame, docs)
    summary: dict[str, int] = {}
    for column, ending in (
        {"n_rows": "", "n_of_base": "_of_base"}.items() if base else [("n_rows", "")]
    ):
        summary |= {
            f"n_{kind}{ending}": int(n)
            for kind, n in zip(frame["ngrams"], frame[column], strict=True)
        }
    write_json(verdict.record(summary), out)
    return summary


def _padded(*tables: pa.Table) -> pa.Table:
    """Concatenate tables of bigrams and trigrams; all rows get a column for a third word."""
    both = pa.concat_tables([OF_BASE.empty_table(), *tables], promote_options="permissive")
    return both.select(OF_BASE.names)


def main() -> None:
    """Run this stage of the DVC pipeline: check the collocations."""
    params = load_params()
    model = find_base(params.embeddings)
    base = None if model is None else base_collocations(params.embeddings, model)
    summary = run(
        params,
        load_configuration().machine,
        paths.CHECKS / "collocations.json",
        DataDocs(paths.DATA_DOCS),
        base,
    )
    print(
        f"the collocations are valid: {summary['n_bigrams']:,} bigrams, "
        f"{summary['n_trigrams']:,} trigrams"
    )


if __name__ == "__main__":
    stage_main(main)
