"""Judge how much of the documents the vocabularies know: documents, embeddings -> checks/coverage.json, or stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lexveil import paths
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.text_rows import texts_of
from lexveil.checks.data_docs import DataDocs
from lexveil.config import MachineParams, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import write_json
from lexveil.text.encode import Lexicon, TokenClass, encode

SEGMENTATIONS = ("word", "gst", "mst")
BATCH = 5_000  # texts cut at a time, which bounds memory

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("dataset", "segmentation", "doc_id", "field")]
    + [(name, pa.int64()) for name in ("n_words", "n_covered", "n_oov")]
)


def count_words(texts: Sequence[str], lexicon: Lexicon) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Words, words in the vocabulary, and words outside it, of each of n texts: (n,) each. Punctuation is no word."""
    encoded = encode(texts, lexicon)
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    is_known = is_word & (encoded.rows >= 0)

    def per_text(chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        weights = encoded.n_words[chosen]
        return np.bincount(encoded.text_of[chosen], weights, minlength=len(texts)).astype(np.int64)

    n_words, n_covered = per_text(is_word), per_text(is_known)
    return {"n_words": n_words, "n_covered": n_covered, "n_oov": n_words - n_covered}


def text_words(documents: pa.Table, lexicon_of: Callable[[str], Lexicon]) -> pa.Table:
    """One row per segmentation and text: dataset, segmentation, doc_id, field, n_words, n_covered, n_oov."""
    texts = texts_of(documents)
    progress = Progress("coverage", len(SEGMENTATIONS) * texts.num_rows, "texts")
    tables = [SCHEMA.empty_table()]
    for segmentation in SEGMENTATIONS:
        lexicon = lexicon_of(segmentation)  # one at a time: on a large corpus each fills much memory
        for batch in texts.to_batches(max_chunksize=BATCH):
            columns: dict[str, object] = {name: batch.column(name) for name in ("dataset", "doc_id", "field")}
            columns["segmentation"] = pa.array([segmentation] * batch.num_rows, pa.string())
            columns |= count_words(batch.column("text").to_pylist(), lexicon)
            tables.append(pa.table(columns, SCHEMA))
            progress.advance(batch.num_rows)
        del lexicon
    return pa.concat_tables(tables)


def run(
    documents: pa.Table,
    lexicon_of: Callable[[str], Lexicon],
    out: Path,
    docs: DataDocs,
    *,
    min_coverage: float,
    machine: MachineParams,
) -> dict[str, Any]:
    """Write the record and return coverage by data set and segmentation.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.validation import validate
    from lexveil.checks.vocabulary_suite import vocab_suite

    out.unlink(missing_ok=True)
    with duckdb_session.session(machine) as con:
        con.register("text_words", text_words(documents, lexicon_of))
        frame = duckdb_session.run(con, "checks/vocab_coverage").df()
    verdict = validate("vocab", vocab_suite(min_coverage), frame, docs)
    coverage: dict[str, Any] = {}
    for row in frame.to_dict("records"):
        coverage.setdefault(str(row.pop("dataset")), {})[str(row.pop("segmentation"))] = row
    write_json(verdict.record({"coverage": coverage}), out)
    return coverage


def main() -> None:
    """Run the stage."""
    params = load_params()
    coverage = run(
        load_documents(),
        lambda segmentation: load_lexicon(segmentation, Path(), params.model.language),
        paths.CHECKS / "coverage.json",
        DataDocs(paths.DATA_DOCS),
        min_coverage=params.checks.min_coverage,
        machine=params.machine,
    )
    for dataset, by_segmentation in coverage.items():
        shares = ", ".join(f"{name} {figures['coverage']:.1%}" for name, figures in by_segmentation.items())
        print(f"words of {dataset} that are known: {shares}")


if __name__ == "__main__":
    stage_main(main)
