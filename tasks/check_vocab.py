"""Judge how much of the documents the vocabularies know: documents, embeddings -> checks/coverage.json, or stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lexveil import paths
from lexveil.artifacts.data_docs import DataDocs
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import Params, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import write_json
from lexveil.text.encode import Lexicon, TokenClass, encode
from lexveil.text.segment import TRAINED
from lexveil.types import Ids

BATCH = 5_000  # texts cut at a time, which bounds memory

LexiconOf = Callable[[str], Lexicon]
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("dataset", "segmentation", "doc_id", "field")]
    + [(name, pa.int64()) for name in ("n_words", "n_covered", "n_oov")]
)


def count_words(texts: Sequence[str], lexicon: Lexicon) -> dict[str, Ids]:
    """Words, words in the vocabulary, and words outside it, of each of n texts: (n,) each. Punctuation is no word."""
    encoded = encode(texts, lexicon)
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    is_known = is_word & (encoded.rows >= 0)

    n_words, n_covered = (
        np.bincount(encoded.text_of[chosen], encoded.n_words[chosen], minlength=len(texts)).astype(np.int64)
        for chosen in (is_word, is_known)
    )
    return {"n_words": n_words, "n_covered": n_covered, "n_oov": n_words - n_covered}


def text_words(documents: pa.Table, lexicon_of: LexiconOf) -> pa.Table:
    """One row per segmentation and text: dataset, segmentation, doc_id, field, n_words, n_covered, n_oov."""
    texts = texts_of(documents)
    progress = Progress("coverage", len(TRAINED) * texts.num_rows, "texts")
    tables = [SCHEMA.empty_table()]
    for segmentation in TRAINED:
        lexicon = lexicon_of(segmentation)  # one at a time: on a large corpus each fills much memory
        for batch in texts.to_batches(max_chunksize=BATCH):
            columns: dict[str, object] = {name: batch.column(name) for name in ("dataset", "doc_id", "field")}
            columns["segmentation"] = pa.array([segmentation] * batch.num_rows, pa.string())
            columns |= count_words(batch.column("text").to_pylist(), lexicon)
            tables.append(pa.table(columns, SCHEMA))
            progress.advance(batch.num_rows)
    return pa.concat_tables(tables)


def run(params: Params, documents: pa.Table, lexicon_of: LexiconOf, out: Path, docs: DataDocs) -> dict[str, Any]:
    """Write the record and return coverage by data set and segmentation.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.validation import validate
    from lexveil.checks.vocabulary_suite import vocab_suite

    out.unlink(missing_ok=True)
    with duckdb_session.session(params.machine) as con:
        con.register("text_words", text_words(documents, lexicon_of))
        frame = duckdb_session.run(con, "checks/vocab_coverage").df()
    verdict = validate("vocab", vocab_suite(params.checks.min_coverage), frame, docs)
    coverage: dict[str, Any] = {}
    for row in frame.to_dict("records"):
        coverage.setdefault(str(row.pop("dataset")), {})[str(row.pop("segmentation"))] = row
    write_json(verdict.record({"coverage": coverage}), out)
    return coverage


def main() -> None:
    """Run the stage."""
    params = load_params()
    lexicon_of = partial(load_lexicon, project=Path(), language=params.model.language)
    coverage = run(params, load_documents(), lexicon_of, paths.CHECKS / "coverage.json", DataDocs(paths.DATA_DOCS))
    for dataset, by_segmentation in coverage.items():
        shares = ", ".join(f"{name} {figures['coverage']:.1%}" for name, figures in by_segmentation.items())
        print(f"words of {dataset} that are known: {shares}")


if __name__ == "__main__":
    stage_main(main)
