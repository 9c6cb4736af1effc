"""The column of the texts is chosen by types and names of columns, never by a text."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import RequestError
from lexveil.io.formats.text_columns import could_hold_texts
from lexveil.io.request import FileRequest
from lexveil.release.adapters.inputs import find_readers

SHORT = "so so"
LONG = "I was told in hospital that I have diabetes and must not work"


@pytest.mark.parametrize(
    "column",
    "review,note,body,title,ticket_text,customer_comment,messageBody,x,x7,Bemerkung,abstract,"
    "2020 remarks,name_of_it,Ärger,?".split(","),
)
def test_names_that_could_be_those_of_texts(column):
    assert could_hold_texts(column)


@pytest.mark.parametrize(
    "column",
    "id,ID,review_id,reviewId,id2,created_at,createdAt,date,visit-date,rating,score_1,is_text,"
    "hasNote,customer,e-mail,user,language,url,first_name,order-no,n,".split(","),
)
def test_names_that_are_not(column):
    assert not could_hold_texts(column)


def write(folder, form, rows):
    folder.mkdir(exist_ok=True)
    file = folder / f"in.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif form == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "\t" if form == "tsv" else ","
        lines = [rows[0], *(row.values() for row in rows)]
        file.write_text("".join(mark.join(map(str, line)) + "\n" for line in lines))
    return file


def chosen(source, **how):
    with find_readers(source, FileRequest(**how), source.parent / "spool") as readers:
        return list(readers[0].text_columns)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "columns", [("review", "note"), ("title", "body"), ("x", "y"), ("foo", "comment")]
)
def test_several_are_refused_whichever_has_the_longer_texts(tmp_path, form, columns):
    """The two sources differ in what is private alone: the refusals are the same words."""
    said = []
    for number, texts in enumerate([(SHORT, LONG), (LONG, SHORT), ("", LONG), (LONG, "")]):
        row = {"id": 1, **dict(zip(columns, texts, strict=True)), "rating": 5}
        file = write(tmp_path / str(number), form, [row, row])
        with pytest.raises(RequestError, match="2 columns could contain texts") as refused:
            chosen(file)
        said.append(str(refused.value).replace(str(file), ""))
        assert chosen(file, text_column=(columns[1],)) == [columns[1]]
    assert len(set(said)) == 1 and all(f"`{column}`" in said[0] for column in columns)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_one_is_taken_whatever_stands_in_it_and_in_others(tmp_path, form):
    for number, (review, name) in enumerate([(SHORT, LONG), (LONG, SHORT), ("", LONG)]):
        row = {"id": 1, "review": review, "customer_name": name, "rating": 5}
        assert chosen(write(tmp_path / str(number), form, [row])) == ["review"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_text_is_taken_beside_others(tmp_path, form):
    assert chosen(write(tmp_path, form, [{"note": LONG, "text": SHORT}])) == ["text"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_column_with_another_role_is_none(tmp_path, form):
    file = write(tmp_path, form, [{"who": "ann", "review": LONG}])
    assert chosen(file, subject_column="who") == ["review"]
    with pytest.raises(RequestError, match="could contain texts"):
        chosen(file)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_types_say_what_a_name_leaves_open(tmp_path, form):
    row = {"x": 5, "y": 2.5, "z": True, "list": [1], "review": LONG}
    assert chosen(write(tmp_path, form, [row])) == ["review"]
    with pytest.raises(RequestError, match="no column contains texts by its type and name"):
        chosen(write(tmp_path / "none", form, [{"x": 5, "id": LONG}]))


def test_a_column_of_nulls_and_one_of_later_rows_could_hold_texts(tmp_path):
    for number, rows in enumerate(
        (
            [{"review": LONG, "note": None}],
            [{"review": LONG, "note": 1}, {"review": LONG, "note": LONG}],
            [{"review": LONG}, {"review": LONG, "note": LONG}],
        )
    ):
        with pytest.raises(RequestError, match="`review`, `note`"):
            chosen(write(tmp_path / str(number), "jsonl", rows))


def test_files_of_a_folder_are_asked_together(tmp_path):
    (tmp_path / "a.csv").write_text(f"id,review\n1,{SHORT}\n")
    (tmp_path / "b.csv").write_text(f"id,review\n1,{LONG}\n")
    with find_readers(tmp_path, FileRequest(), tmp_path / "spool") as readers:
        assert [reader.text_columns for reader in readers] == [["review"]] * 2
    (tmp_path / "c.csv").write_text(f"id,review,note\n1,{LONG},{SHORT}\n")
    with pytest.raises(RequestError, match="`review`, `note`"):
        chosen(tmp_path)
