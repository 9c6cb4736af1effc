"""Tables of every kind keep their kind, their other columns and their order; batches are releases
of their own."""

import json
import pickle

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lexveil
from lexveil.release.adapters import memory as frames
from lexveil.release.adapters.memory import Texts, whole_chunks

HOW = {"mechanism": "tem", "strategy": "S1", "epsilon": 2.0, "average_words": 8}
ROWS = {
    "id": [3, 1, 2],
    "body": ["The bank of the river was quiet.", None, "She told the doctor about the pain."],
    "who": ["ana", "ben", "ana"],
}


@pytest.fixture
def texts(built, tmp_path, monkeypatch):
    """Rewritten rows as a list; the current folder is not a project."""
    monkeypatch.chdir(tmp_path)
    return lexveil.privatize(
        ROWS["body"], subjects=ROWS["who"], seed=7, project=built, **HOW
    ).values


KINDS = {
    "pandas": lambda: pd.DataFrame(ROWS, index=[10, 20, 30]),
    "polars": lambda: pl.DataFrame(ROWS),
    "arrow": lambda: pa.table(ROWS),
    "duckdb": lambda: duckdb.from_arrow(pa.table(ROWS)),
    "datasets": lambda: pytest.importorskip("datasets").Dataset.from_dict(ROWS),
}


def rows_of(table):
    if isinstance(table, pd.DataFrame):
        assert list(table.index) == [10, 20, 30]
        return {
            name: [None if pd.isna(value) else value for value in table[name]] for name in table
        }
    if hasattr(table, "to_pydict"):
        return table.to_pydict()
    if hasattr(table, "fetch_arrow_table"):
        return table.fetch_arrow_table().to_pydict()
    return table.to_dict(as_series=False) if isinstance(table, pl.DataFrame) else table.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_keeps_its_kind(kind, texts, built):
    given = KINDS[kind]()
    done = lexveil.privatize(given, column="body", subjects="who", seed=7, project=built, **HOW)
    assert type(done.values) is type(given)
    found = rows_of(done.values)
    assert list(found) == list(ROWS)
    assert found == ROWS | {"body": texts}
    assert found["body"] != ROWS["body"] and rows_of(given)["body"] == ROWS["body"]


@pytest.mark.parametrize("labels", [[0, 1, 2], [("a", 1), ("a", 2), ("b", 1)], [2020, "body", 1]])
def test_columns_of_pandas_may_have_any_labels(labels, texts, built):
    given = pd.DataFrame(ROWS).set_axis(pd.Index(labels, tupleize_cols=True), axis=1)
    done = lexveil.privatize(
        given, column=labels[1], subjects=labels[2], seed=7, project=built, **HOW
    )
    assert list(done.values.columns) == labels and list(done.values[labels[0]]) == ROWS["id"]
    found = [None if pd.isna(value) else value for value in done.values[labels[1]]]
    assert found == texts


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        (
            pd.DataFrame(ROWS),
            None,
            r"column: texts is a table; name one of its columns: `id`, `body`, `who`",
        ),
        (pl.LazyFrame(ROWS), "body", r"frame\.collect\(\)"),
        (ROWS["body"], "body", r"column names a column, but texts is a list, which has no columns"),
        (ROWS, "body", r"texts is a dict; give a list of strings"),
        (5, None, r"texts is an int; give a list of strings"),
        (ROWS, None, r"a dict; give a list of strings"),
        (
            ["a", float("nan")],
            None,
            r"text 2: `texts` is missing \(NaN\); remove the row, or write ''",
        ),
        (pd.DataFrame(ROWS), "id", r"text 1: `id` has a number, not text"),
    ],
)
def test_what_is_no_table_says_what_to_do(given, column, message, built):
    with pytest.raises(lexveil.RequestError, match=message) as raised:
        lexveil.privatize(given, column=column, seed=7, project=built, **HOW)
    assert "river" not in str(raised.value)


def test_a_selection_of_a_dataset_and_what_streams(built, texts):
    datasets = pytest.importorskip("datasets")
    given = datasets.Dataset.from_dict(ROWS)
    done = lexveil.privatize(
        given.select([2, 1]), column="body", seed=7, project=built, **HOW
    ).values
    assert done["id"] == [2, 1] and done["body"][1] is None and done.features == given.features
    with pytest.raises(lexveil.RequestError, match="give one of its splits: `train`"):
        lexveil.privatize(
            datasets.DatasetDict(train=given), column="body", seed=7, project=built, **HOW
        )
    with pytest.raises(lexveil.RequestError, match="give its batches"):
        lexveil.privatize(given.to_iterable_dataset(), column="body", seed=7, project=built, **HOW)


def test_a_released_dataset_holds_nothing_that_follows_from_the_source(
    built, tmp_path, monkeypatch
):
    """Two sources with the same output: their files differ by a random fingerprint alone."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(frames.secrets, "token_hex", lambda n: "0" * 2 * n)
    found = []
    for number, text in enumerate(["the waiter was rude tonight", "a dog"]):
        source = tmp_path / f"{number}.jsonl"
        source.write_text(json.dumps({"body": text}) + "\n")
        given = datasets.load_dataset(
            "json", data_files=str(source), split="train", cache_dir=str(tmp_path / "hf")
        )
        given = given.map(lambda batch: batch, batched=True, load_from_cache_file=False)
        whole = replaced(given, "the same")
        assert whole.info.dataset_size is None and whole.features == given.features
        whole.save_to_disk(tmp_path / f"whole{number}")
        found.append({file.read_bytes() for file in (tmp_path / f"whole{number}").iterdir()})
    assert found[0] == found[1]


def replaced(table, *texts):
    frame = frames.frame_of(table)
    assert frame is not None
    return frame.replacing("body")(list(texts))


def test_metadata_of_tables_is_not_passed_on():
    frame = pd.DataFrame({"body": ["x"]})
    frame.attrs["first"] = "the waiter was rude"
    assert not replaced(frame, "y").attrs and frame.attrs
    field = pa.field("body", pa.string(), metadata={"first": "rude"})
    schema = pa.schema(
        [field, pa.field("n", pa.int64(), metadata={"of": "rude"})], metadata={"x": "rude"}
    )
    made = replaced(pa.table({"body": ["x"], "n": [1]}, schema=schema), "y")
    assert made.schema.metadata is None and not any(each.metadata for each in made.schema)
    assert made.to_pylist() == [{"body": "y", "n": 1}]


def test_what_no_row_has_is_not_passed_on():
    """Entries of dictionaries, categories, metadata of inner fields, and bytes of rows that were
    sliced away."""
    inner = pa.struct([pa.field("a", pa.string(), metadata={"first": "rude"})])
    columns = {
        "body": ["x", "y", "rude"],
        "kind": pa.array(["a", "b", "rude"]).dictionary_encode(),
        "nested": pa.array([{"a": "n"}, {"a": "m"}, {"a": "rude"}], inner),
        "plain": ["p", "q", "rude"],
    }
    made = replaced(pa.table(columns).slice(0, 2), "s", "t")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as stream:
        stream.write_table(made)
    assert b"rude" not in sink.getvalue().to_pybytes()
    assert made.to_pylist() == [
        {"body": "s", "kind": "a", "nested": {"a": "n"}, "plain": "p"},
        {"body": "t", "kind": "b", "nested": {"a": "m"}, "plain": "q"},
    ]
    buffers = [
        buffer for column in made for chunk in column.chunks for buffer in chunk.buffers() if buffer
    ]
    assert not any(b"rude" in buffer.to_pybytes() for buffer in buffers)
    frame = pd.DataFrame({"body": ["x", "rude"], "kind": pd.Categorical(["a", "rude"])}).iloc[:1]
    assert list(replaced(frame, "y")["kind"].cat.categories) == ["a"]
    own = pl.DataFrame(
        {"body": ["x", "rude"], "kind": ["a", "rude"]}, schema_overrides={"kind": pl.Categorical}
    )
    kept = replaced(own[:1], "y")
    assert kept.schema["kind"] == pl.Categorical and kept.to_dict(as_series=False) == {
        "body": ["y"],
        "kind": ["a"],
    }


class UserText(str):
    """A type of text that no other process knows."""

    __slots__ = ()


def test_texts_of_a_class_of_the_users_are_plain_in_workers():
    (chunk,) = whole_chunks(Texts([UserText("one two")]))
    assert b"UserText" not in pickle.dumps(chunk)


LABELS = ["a", "b", "c"]
PEOPLE = ["ana", "ben", "carl"]
SHUFFLED = [2, 0, 1]


def text_sides():
    """Texts of pandas, each with the labels a, b, c."""
    return {
        "a Series": pd.Series(["x", "y", "z"], index=LABELS),
        "a DataFrame": pd.DataFrame({"body": ["x", "y", "z"]}, index=LABELS),
    }


@pytest.mark.parametrize("side", text_sides())
@pytest.mark.parametrize(
    ("labels", "n_levels"),
    [(LABELS, 1), ([1, 2, 3], 1), (["1970", "1971", "1972"], 0), (LABELS, 2)],
)
def test_subjects_of_pandas_belong_to_texts_by_their_labels(side, labels, n_levels):
    index = pd.Index(labels) if n_levels == 1 else pd.to_datetime(labels) if not n_levels else None
    if index is None:
        index = pd.MultiIndex.from_tuples([(label, number) for number, label in enumerate(labels)])
    texts = text_sides()[side].set_axis(index, axis=0)
    people = pd.Series(PEOPLE, index=index).iloc[SHUFFLED]
    assert frames.column_list(people, "") != PEOPLE
    assert frames.column_list(frames.aligned(people, texts, "subjects"), "") == PEOPLE


@pytest.mark.parametrize("side", text_sides())
@pytest.mark.parametrize(
    ("people", "message"),
    [
        (pd.Series(PEOPLE), "differ from the labels of the texts"),
        (pd.Series(PEOPLE, index=["c", "b", "x"]), "differ from the labels of the texts"),
        (
            pd.Series([*PEOPLE, "dora"], index=["b", "a", "c", "d"]),
            "differ from the labels of the texts",
        ),
        (pd.Series(PEOPLE[:2], index=["a", "b"]), "differ from the labels of the texts"),
        (pd.Series(PEOPLE, index=["a", "a", "b"]), "labels of the index are repeated"),
    ],
)
def test_subjects_whose_labels_do_not_say_whose_they_are_are_refused(side, people, message):
    with pytest.raises(lexveil.RequestError, match=rf"subjects: .*{message}"):
        frames.aligned(people, text_sides()[side], "subjects")


def test_labels_that_occur_twice_in_one_order_are_taken_as_they_stand():
    index = ["a", "a", "b"]
    texts = pd.Series(["x", "y", "z"], index=index)
    people = pd.Series(PEOPLE, index=index)
    assert frames.column_list(frames.aligned(people, texts, "subjects"), "") == PEOPLE


@pytest.mark.parametrize("people", [PEOPLE, tuple(PEOPLE), pa.array(PEOPLE), pl.Series(PEOPLE)])
@pytest.mark.parametrize("side", text_sides())
def test_what_has_no_labels_belongs_by_position(side, people):
    assert frames.aligned(people, text_sides()[side], "subjects") is people
    shuffled = pd.Series(PEOPLE, index=LABELS).iloc[SHUFFLED]
    assert frames.aligned(shuffled, people, "subjects") is shuffled


def test_a_call_rewrites_each_text_by_the_spans_and_subject_of_its_label(built, monkeypatch):
    seen = list[Texts]()
    whole = frames.privatize_texts
    monkeypatch.setattr(
        frames,
        "privatize_texts",
        lambda source, *a, **kw: (seen.append(source), whole(source, *a, **kw))[1],
    )
    texts = pd.Series(["She told the doctor.", "No."], index=["long", "short"])
    spans = pd.Series([[], [{"start": 13, "end": 19, "type": "PERSON"}]], index=["short", "long"])
    people = pd.Series(["ben", "ana"], index=["short", "long"])
    done = lexveil.privatize(texts, spans=spans, subjects=people, seed=7, project=built, **HOW)
    assert seen[0].subjects == ["ana", "ben"]
    assert "PERSON" in done.values["long"].upper() and list(done.values.index) == ["long", "short"]


def test_arrays_of_numpy_are_columns(texts, built):
    given = np.array(ROWS["body"], dtype=object)
    people = np.array(ROWS["who"])
    done = lexveil.privatize(given, subjects=people, seed=7, project=built, **HOW)
    assert isinstance(done.values, np.ndarray) and list(done.values) == texts
