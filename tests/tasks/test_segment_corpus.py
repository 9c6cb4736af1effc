"""Segmented files: lines from word numbers, and what is counted while they are written."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.core.text.collocation_index import Collocations
from lexveil.lab.collocations.sampling import TOKENS
from tasks.segment_corpus import segment_file

WORDS = ["é", ",", "new", "york", "city", "😀"]
KNOWN = Collocations.build(
    [["new"], ["york"]], np.array([2.5]), [["new"], ["york"], ["city"]], np.array([4.25])
)


def corpus(folder, sentences):
    rows = [["d"] * len(sentences), list(range(len(sentences))), sentences]
    pq.write_table(pa.table(rows, TOKENS), folder / "tokens.parquet", row_group_size=2)
    words = WORDS if sentences else []
    table = {
        "word_id": pa.array(range(len(words)), pa.int32()),
        "word": pa.array(words, pa.string()),
    }
    pq.write_table(pa.table(table), folder / "words.parquet")
    return folder / "tokens.parquet", folder / "words.parquet"


SENTENCES = [[2, 3, 4], [0, 1], [5, 2, 3], [2], [3, 4]]  # no collocation over the end of a sentence


@pytest.mark.parametrize("batch", [1, 100])
def test_lines_by_hand(batch, tmp_path, monkeypatch):
    monkeypatch.setattr("lexveil.lab.collocations.segmenting.SENTENCES_AT_A_TIME", batch)
    totals = segment_file(*corpus(tmp_path, SENTENCES), tmp_path / "gst.txt", "gst", KNOWN)
    assert (
        tmp_path / "gst.txt"
    ).read_bytes().decode() == "new_york_city\né ,\n😀 new_york\nnew\nyork city\n"
    assert totals == {
        "n_sentences": 5,
        "n_words": 11,
        "n_tokens": 8,
        "n_unigram_tokens": 6,
        "n_bigram_tokens": 1,
        "n_trigram_tokens": 1,
        "pmi_bits": 6.75,
    }


def test_words_alone_and_an_empty_corpus(tmp_path):
    totals = segment_file(*corpus(tmp_path, SENTENCES), tmp_path / "word.txt", "word", None)
    assert (
        tmp_path / "word.txt"
    ).read_bytes().decode() == "new york city\né ,\n😀 new york\nnew\nyork city\n"
    assert totals["n_tokens"] == totals["n_words"] == totals["n_unigram_tokens"] == 11
    totals = segment_file(*corpus(tmp_path, []), tmp_path / "out.txt", "mst", KNOWN)
    assert (tmp_path / "out.txt").read_bytes() == b"" and set(totals.values()) == {0}
