"""Pairs of texts of which only the first is rewritten: how they come in, who reads the second."""

import pyarrow.parquet as pq
import pytest
from intake_files import write

from lexveil.base.errors import RequestError
from lexveil.core.language_models.base import SEPARATOR, classified_texts
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.text_rows import texts_of
from lexveil.io.formats.input_files import find_sources
from lexveil.lab.data.documents import write_documents

PAIR = {"text": "the cat sat", "text_b": "a cat was there"}
SINGLE = {"text": "no second text"}


def written(tmp_path, *rows, pairs="first"):
    file = write(tmp_path / "rte.jsonl", [*rows])
    reports = write_documents(find_sources([file]), tmp_path / "documents", pairs=pairs)
    assert reports["rte"].contexts == (
        sum("text_b" in row for row in rows) if pairs == "first" else 0
    )
    return load_documents(tmp_path / "documents")


def test_the_second_text_of_a_pair_is_its_context(tmp_path):
    documents = written(tmp_path, PAIR, SINGLE)
    assert documents.column("text_b").to_pylist() == [None, None]
    assert documents.column("context").to_pylist() == ["a cat was there", None]


def test_budgets_and_averages_see_the_first_text_alone(tmp_path):
    assert texts_of(written(tmp_path, PAIR)).column("text").to_pylist() == ["the cat sat"]


def test_classifiers_read_both_texts(tmp_path):
    texts = classified_texts(written(tmp_path, PAIR, SINGLE))
    assert texts == [f"the cat sat {SEPARATOR} a cat was there", "no second text"]


def test_both_texts_are_rewritten_unless_said_otherwise(tmp_path):
    documents = written(tmp_path, PAIR, pairs="both")
    assert documents.column("text_b").to_pylist() == ["a cat was there"]
    assert documents.column("context").to_pylist() == [None]
    assert "context" not in pq.read_schema(tmp_path / "documents/rte.parquet").names


@pytest.mark.parametrize("text", ["", "  "])
def test_a_pair_without_a_first_text_is_refused(tmp_path, text):
    with pytest.raises(RequestError, match=r"rte\.jsonl, line 2: the pair has no first text"):
        written(tmp_path, PAIR, PAIR | {"text": text})


def test_documents_without_pairs_are_refused(tmp_path):
    with pytest.raises(RequestError, match="no row of the documents has a second text"):
        written(tmp_path, SINGLE)
