"""Average words of whole data sets."""

import pyarrow as pa
import pytest

from examples.replication import lengths


def test_words_are_counted_without_punctuation_and_by_split():
    table = pa.table(
        {"text": ["A film, a good film.", "Bad!", "So so."], "split": ["train", "train", "dev"]}
    )
    both, dev, train = lengths.lengths_of("sst2", table)
    assert (both.split, both.n_texts, both.words) == ("all", 3, pytest.approx(8 / 3))
    assert (train.split, train.words, train.with_marks) == ("train", 3.0, 4.5)
    assert (dev.split, dev.words, dev.with_marks) == ("dev", 2.0, 3.0)


def test_the_table_has_the_printed_lengths():
    length = lengths.Length("rte", "all", n_texts=10, words=44.48, with_marks=50.0)
    table = lengths.markdown([length], lengths.printed_lengths())
    assert "| rte | all | 10 | 44.48 | 50.00 | 44.48 | +0.0 % |" in table
