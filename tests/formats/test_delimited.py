"""Files of fields between delimiters: which delimiter and encoding they have, and that every byte
stays that is not of a rewritten text."""

from __future__ import annotations

import csv
import io
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.base.errors import RequestError
from lexveil.io.formats.readers import Reader, open_writer
from lexveil.io.formats.registry import as_source

NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def rewritten(
    folder,
    name,
    content,
    new="NEW",
    said=None,
    **how,
):
    """The bytes that come of a file whose column ``text`` is rewritten; ``new`` None: as it is."""
    file = folder / name
    out = folder / f"out-{name}"
    file.write_bytes(content)
    source = as_source(file)
    assert source is not None
    reader = Reader(
        replace(source, **how), ["text"], tell=(said if said is not None else []).append
    )
    chunks = reader.chunks()
    first = next(chunks)
    with open_writer(reader, out) as writer:
        for chunk in itertools.chain([first], chunks):
            texts = [[text if new is None else new for text in row] for row in chunk.texts]
            writer.write(chunk, texts, np.ones(len(chunk), dtype=np.bool_))
    return out.read_bytes()


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("delimiter", NAMES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
def test_a_dialect_is_recognised_said_and_kept(tmp_path, ending, delimiter, end, encoding):
    rows = [["id", "text", "note"], ["007", "I was there.", "é 1,5"], ["008", "So; what", "x|y"]]
    is_tsv = ending == "tsv" and delimiter == "\t"
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator=end).writerows(rows)
    mark = "\ufeff" if encoding[:6] in ("utf-16", "utf-32") else ""
    content = f"{mark}{buffer.getvalue()}"
    if is_tsv:
        content = content.replace('"', "")
    said = []
    written = rewritten(tmp_path, f"f.{ending}", content.encode(encoding), said=said)
    expected = content
    for text in ("I was there.", '"So; what"' if delimiter == ";" else "So; what"):
        expected = expected.replace(text, "NEW")
    assert written == expected.encode(encoding)
    usual = {"csv": ",", "tsv": "\t"}[ending]
    assert ("a " + NAMES[delimiter] in "".join(said)) == (delimiter != usual)
    assert (encoding[:6].upper() in "".join(said)) == bool(mark)
    assert len(said) == (delimiter != usual or bool(mark)) and "there" not in "".join(said)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.csv", "id;text|note\n1;a|b\n"),
        ("f.csv", "id,text;note\n1,a;b\n"),
        ("f.tsv", "id,text|note\n1,a|b\n"),
        ("f.tsv", "id\ttext,note\n1\ta,b\n"),
    ],
)
def test_what_could_be_cut_in_two_ways_is_refused_until_somebody_says(tmp_path, name, content):
    with pytest.raises(
        RequestError, match="could be the delimiter; name the delimiter by delimiter"
    ):
        rewritten(tmp_path, name, content.encode())
    first = next(mark for mark in content if mark in NAMES)
    columns = content.partition("\n")[0].split(first)
    insisted = content.replace(columns[1], "text")
    new = rewritten(tmp_path, name, insisted.encode(), delimiter=first).decode()
    assert new.partition("\n")[2] == f"1{first}NEW\n"


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        # Rows tell which of two it is.
        ("f.csv", "id,text; or note\n1,good\n2,bad\n", None),
        ("f.csv", "id;text;a,b\n1;x, y;2\n2;z;3\n", ["x, y", "z"]),
        ("f.csv", 'id,"text; and more",text\n1,"a;b","c,d"\n', ["c,d"]),
        # One column, whose texts have all of the characters.
        ("f.csv", 'text\n"a;b|c\td, e"\n', ["a;b|c\td, e"]),
        ("f.tsv", "text\na;b|c, d\n", ["a;b|c, d"]),
        # The line by which Excel is told.
        ("f.csv", "sep=;\r\nid;text\r\n1;x, y\r\n", ["x, y"]),
        ("f.csv", "sep=\t\nid\ttext\n1\tx\n", ["x"]),
    ],
)
def test_the_header_says_where_a_file_is_cut(tmp_path, name, content, texts):
    (tmp_path / name).write_text(content, newline="")
    source = as_source(tmp_path / name)
    assert source is not None
    column = "text; or note" if texts is None else "text"
    (chunk,) = Reader(source, [column]).chunks()
    assert [row[0] for row in chunk.texts] == (["good", "bad"] if texts is None else texts)
    if texts is not None:
        assert rewritten(tmp_path, name, content.encode(), new=None) == content.encode()


def test_private_rows_do_not_choose_the_delimiter(tmp_path):
    """Rows decide about the delimiter only if the header could be split in two ways."""
    for text in ("a b", "a;b", "a|b", "a\tb", '"a,b"', '"a;b"'):
        content = f"id,text\n1,{text}\n2,{text}\n"
        assert rewritten(tmp_path, "f.csv", content.encode()) == b"id,text\n1,NEW\n2,NEW\n"
        bars = content.replace(",", ";", 2) if "," not in text else content
        if bars == f"id;text\n1;{text}\n2,{text}\n":
            with pytest.raises(RequestError, match="line 3: the number of fields is 1"):
                rewritten(tmp_path, "f.csv", bars.replace("a;b", "ab").encode())


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "shift_jis", "cp037", "utf-8"])
def test_an_encoding_that_somebody_names_is_taken_and_kept(tmp_path, encoding):
    content = (
        "id,text,note\n1,caf\u00e9,na\u00efve\n"
        if encoding != "shift_jis"
        else "id,text\n1,\u30ab\n"
    )
    written = rewritten(tmp_path, "f.csv", content.encode(encoding), encoding=encoding)
    expected = content.replace("caf\u00e9", "NEW").replace("\u30ab", "NEW")
    assert written.decode(encoding) == expected


@pytest.mark.parametrize("name", ["f.jsonl", "f.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_other_texts_of_utf_16_come_out_so(tmp_path, name, encoding):
    line = '{"text": "%s", "n": 1.50}\n' if name == "f.jsonl" else "%s\n"
    said = []
    written = rewritten(
        tmp_path, name, ("\ufeff" + line % "caf\u00e9" * 3).encode(encoding), said=said
    )
    assert written.decode(encoding) == "\ufeff" + line % "NEW" * 3
    assert len(said) == 1 and "UTF-16" in said[0]


@pytest.mark.parametrize("packing", [1, 7, 2**17 - 3, 2**17, 2**17 + 1])
def test_long_files_of_utf_16_lose_nothing(tmp_path, packing):
    rows = "".join(f"{number};text {number};{'é' * packing}\r\n" for number in range(40))
    content = ("\ufeffid;text;z\r\n" + rows).encode("utf-16-le")
    assert rewritten(tmp_path, "f.csv", content, new=None) == content


def test_utf_16_without_a_mark_is_refused_with_the_way_out(tmp_path):
    content = "id;text\r\n1;x\r\n".encode("utf-16-le")
    with pytest.raises(RequestError, match=r"NUL characters, as UTF-16 without .* utf-16-le"):
        rewritten(tmp_path, "f.csv", content)
    assert rewritten(tmp_path, "f.csv", content, encoding="utf-16-le", new=None) == content


@pytest.mark.parametrize(
    ("begins", "kind"),
    [
        (b"PK\x03\x04", "spreadsheet"),
        (b"\xd0\xcf\x11\xe0", "spreadsheet"),
        (b"PAR1", "ends in .parquet"),
        (b"BZh9", "bz2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x1f\x8b\x08", "ends in .gz"),
        (b"SQLite format 3\0", "SQLite"),
    ],
)
@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.txt", "f.jsonl"])
def test_a_file_of_another_kind_is_named_as_such(tmp_path, name, begins, kind):
    with pytest.raises(RequestError, match=kind):
        rewritten(tmp_path, name, begins + bytes(range(256)))


FIELDS = st.text(st.sampled_from("a\",;|\t '\néß"), max_size=5)
STYLES = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)


@given(
    st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1, max_size=4),
    st.sampled_from(sorted(NAMES)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(STYLES),
    st.booleans(),
)
def test_every_other_field_keeps_its_bytes(
    tmp_path_factory,
    rows,
    delimiter,
    end,
    style,
    ends,
):
    """Rows are written by the module csv, field by field; a last line without an end gets one."""

    def field(text):
        piece = io.StringIO()
        writer = csv.writer(piece, delimiter=delimiter, lineterminator="\r\n", quoting=style)
        writer.writerow([text, "x"])
        return piece.getvalue().removesuffix("\r\n").removesuffix('"x"' if style else "x")[:-1]

    def file(text):
        written = [delimiter.join((field(a), text(b), field(c))) + end for a, b, c in rows]
        return delimiter.join(("a", "text", "b")) + end + "".join(written)

    source = file(field)
    folder = tmp_path_factory.mktemp("fields")
    content = source if ends else source.removesuffix(end)
    assert rewritten(folder, "f.csv", content.encode(), new="N").decode() == file(lambda _: "N")


def test_null_and_nothing_stay_apart(tmp_path):
    """PostgreSQL reads an empty field as null, and two quotes as a text without characters."""
    source = b'a,text,b\n"",,""\n,"",\n"x","full","5"" nail"\n'
    assert rewritten(tmp_path, "f.csv", source, new=None) == source.replace(b'"full"', b"full")
    emptied = rewritten(tmp_path, "f.csv", b'text,b\n,1\n"",2\nfull,3\n"a, b",4\n', new="")
    assert emptied == b'text,b\n,1\n"",2\n"",3\n"",4\n'


@pytest.mark.parametrize("new", ["plain", "with, comma", 'with "quotes"', "with\nbreak"])
def test_whether_a_text_is_quoted_follows_from_it_alone(tmp_path, new):
    """The quotes must not follow from the source text, because they would reveal its commas."""
    sources = [b"text,b\nplain,1\n", b'text,b\n"plain",1\n', b'text,b\n"a, ""b""\n",1\n']
    written = {rewritten(tmp_path, "f.csv", source, new=new) for source in sources}
    assert len(written) == 1
    (only,) = written
    assert list(csv.reader(io.StringIO(only.decode(), newline="")))[1] == [new, "1"]


def test_mixed_line_ends_stay(tmp_path):
    source = b"a,text\r\n1,x\n2,y\r\n3,z"
    assert rewritten(tmp_path, "f.csv", source, new=None) == source + b"\r\n"


TEXTS = ("the room was very cold", "we had a good time", "nobody was there at all")


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("f.csv", ",review\n" + "".join(f"{n},{text}\n" for n, text in enumerate(TEXTS)), "review"),
        ("f.csv", ",great\n" + "".join(f"x{n},{text}\n" for n, text in enumerate(TEXTS)), None),
        ("f.csv", ",great,5\n" + "".join(f"{n},{text},4\n" for n, text in enumerate(TEXTS)), None),
        ("f.csv", "2020,review\n" + "".join(f"1,{text}\n" for text in TEXTS), None),
        ("f.jsonl", "".join(f'{{"1": "{text}", "2020": 5}}\n' for text in TEXTS), "1"),
        ("f.jsonl", "".join(f'{{"a b c": "{text}", "2020": 5}}\n' for text in TEXTS), None),
        ("f.jsonl", "{}\n", None),
    ],
)
def test_a_header_is_told_from_a_row(tmp_path, name, content, column):
    """The index of pandas has no name, and keys may be numbers; else a row would be published."""
    (tmp_path / name).write_text(content)
    source = as_source(tmp_path / name)
    assert source is not None
    reader = Reader(source, [])
    if column is None:
        with pytest.raises(RequestError, match="there is no column `text`"):
            reader.text_columns_by_name()
    else:
        assert reader.text_columns_by_name() == [column]
