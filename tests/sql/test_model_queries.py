"""The queries of the packaged model, on a few words."""

import pyarrow as pa

from lexveil.io.execution import duckdb_session


def test_documents_are_counted_once_and_words_inside_collocations_too():
    lines = pa.table(
        {
            "doc": pa.array([0, 0, 1, 2], pa.int32()),
            "line": ["new_york is big", "york is york", "new_york", "is"],
        }
    )
    with duckdb_session.session() as con:
        con.register("sentences", lines)
        rows = duckdb_session.run(con, "model/token_documents", min_documents=2).fetchall()
        # token, occurrences, documents: york stands in new_york twice and alone twice; "big" is of
        # one document
        assert rows == [("is", 3, 2), ("new", 2, 2), ("new_york", 2, 2), ("york", 4, 2)]
        con.register("sentences", lines)
        every = duckdb_session.run(con, "model/token_documents", min_documents=1).fetchall()
        assert [row[0] for row in every] == ["big", "is", "new", "new_york", "york"]


def test_capitals_are_counted_by_pairs_that_overlap():
    texts = pa.table(
        {"text": ["Then John F. Smith met Mary O’Neil. mary smith", "John Smith", None]}
    )
    with duckdb_session.session() as con:
        con.register("texts", texts)
        rows = duckdb_session.run(con, "model/capitalised_pairs").fetchall()
    pairs = "f smith", "john f", "john smith", "mary o'neil", "then john"
    assert rows == [(*pair.split(), 1) for pair in pairs]


def test_sources_have_their_documents_and_words_without_punctuation():
    sample = pa.table(
        {"doc_id": ["a", "b", "c"], "text": ["x .", "y", "z"], "source": ["web", "web", None]}
    )
    sentences = (
        pa.array([0, 1, 0], pa.int32()),
        pa.array([[5, 0], [3], [2, 1]], pa.list_(pa.int32())),
    )
    tokens = pa.table(
        [pa.array(["a", "a", "b"]), *sentences], names=["doc_id", "sentence_id", "ids"]
    )
    with duckdb_session.session() as con:
        con.register("sample", sample)
        con.register("tokens", tokens)
        rows = duckdb_session.run(con, "model/sources", first_word=2).fetchall()
    assert rows == [("", 1, 0), ("web", 2, 3)]
