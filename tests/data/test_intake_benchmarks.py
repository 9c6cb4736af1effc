"""Public benchmarks as they are handed around go through `lexveil data use`, with the splits they ship."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lexveil.data import data_store

SHARED = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not on this machine")
def test_every_benchmark_comes_in_whole_and_with_its_splits(root: Path, tmp_path: Path) -> None:
    files = sorted(SHARED.glob("*.parquet"))
    assert len(files) >= 13
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("One text.\n")
    data_store.use(corpus, files, "text", root)
    for file in files:
        given, taken = pq.read_table(file), pq.read_table(root / "data/documents" / file.name)
        assert taken.num_rows == given.num_rows
        for column in ("split", "text_b", "label", "attribute"):
            if column in given.column_names:
                expected = given.column(column).to_pylist()
                assert taken.column(column).to_pylist() == [None if one is None else str(one) for one in expected]
        # Rewriting has no use for white space at the ends; all else of a text stays.
        assert pc.all(pc.equal(pc.utf8_trim_whitespace(taken["text"]), pc.utf8_trim_whitespace(given["text"]))).as_py()
