"""Forms and packings that pass through `lexveil privatize` unharmed, with everything that is not
text.
"""

import bz2
import csv
import datetime
import decimal
import gzip
import io
import json
import lzma
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file
from bad_inputs import lines, packed, texts

from lexveil import Ledger, RequestError, privatize
from lexveil.io.formats import chunks

EXPERIMENT = {
    "mechanism": "madlib",
    "strategy": "S3",
    "epsilon": 5.0,
    "mode": "experiment",
    "seed": 7,
}
NOTHING = {"mechanism": "none", "strategy": "none", "mode": "experiment"}
RELEASE = {"mechanism": "madlib", "strategy": "S3", "epsilon": 5.0}
SENTENCE = "the government said fire services in new south wales were there"


def unpacked(file):
    content = file.read_bytes()
    if file.name.endswith(".gz"):
        return gzip.decompress(content)
    if file.name.endswith((".bz2", ".xz")):
        return (bz2 if file.name.endswith("2") else lzma).decompress(content)
    return (
        pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
        if file.name.endswith(".zst")
        else content
    )


def rewritten(ready, content, ending, how=EXPERIMENT):
    """Rewrite a content that is packed by its ending, and return the unpacked output."""
    folder = ready / how["mechanism"]
    folder.mkdir(exist_ok=True)
    source = folder / f"in.{ending}"
    out = folder / f"out.{ending}"
    source.write_bytes(packed(content, ending.rpartition(".")[2]))
    privatize_file(source, out, **how)
    return unpacked(out)


@pytest.mark.parametrize(("end", "packing"), [("\n", ".gz"), ("\r\n", "")])
def test_csv_keeps_every_other_field(ready, packing, end):
    rows = [
        ["id", "text", "note, with a comma", "ä"],
        ["007", SENTENCE, 'she said "no"', " 1.50"],
        ["", f'{SENTENCE}\n"{SENTENCE}"', "two\r\nlines", "1e5"],
        ["x", "", "", "=1+1"],
    ]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=end).writerows(rows)
    source = buffer.getvalue().encode()
    assert rewritten(ready, source, f"csv{packing}", NOTHING) == source
    out = rewritten(ready, source, f"csv{packing}").decode()
    found = list(csv.reader(io.StringIO(out, newline="")))
    assert [[*row[:1], *row[2:]] for row in found] == [[*row[:1], *row[2:]] for row in rows]
    assert found[0][1] == "text" and found[3][1] == "" and found[1][1] not in ("", SENTENCE)


@pytest.mark.parametrize("packing", ["", ".zst", ".bz2", ".xz"])
def test_tsv_and_text_keep_their_lines(ready, packing):
    tsv = f'id\ttext\tz\r\n1\t{SENTENCE}\t"open\r\n2\t\t 1.50 \r\n'
    out = rewritten(ready, tsv.encode(), f"tsv{packing}").decode()
    assert re.sub(r"(?m)^1\t[^\t]+", f"1\t{SENTENCE}", out) == tsv and SENTENCE not in out
    text = f"{SENTENCE}\n\n \t\r\n{SENTENCE}\r\nlast {SENTENCE}"
    out = rewritten(ready, text.encode(), f"txt{packing}").decode()
    assert [line in ("", " \t\r") for line in out.split("\n")] == [False, True, True, False, False]
    for source, ending in ((tsv, "tsv"), (text, "txt")):
        assert rewritten(ready, source.encode(), f"{ending}{packing}", NOTHING).decode() == source


def many_types():
    """Columns of every kind that might be read as something else on the way."""
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    columns = {
        "i8": pa.array([1, None, -128], pa.int8()),
        "u64": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "f32": pa.array([1.5, float("nan"), None], pa.float32()),
        "bool": pa.array([True, None, False]),
        "price": pa.array(
            [decimal.Decimal("1.50"), None, decimal.Decimal("-99999.99")], pa.decimal128(9, 2)
        ),
        "ns": pa.array([1, None, -(2**40)], pa.timestamp("ns")),
        "zone": pa.array([moment, None, moment], pa.timestamp("us", "Europe/Vienna")),
        "date": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]),
        "time": pa.array([1, 2, None], pa.time64("us")),
        "kind": pa.array(["a", None, "a"]).dictionary_encode(),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int16())),
        "struct": pa.array([{"text": "kept", "n": None}, None, {"text": None, "n": 1}]),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "blob": pa.array([b"\xff\x00", None, b""]),
        "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "large": pa.array(["x", None, ""], pa.large_string()),
        "nothing": pa.nulls(3),
    }
    return pa.table(columns)


TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_parquet_keeps_every_type(ready, kind):
    whole = many_types().add_column(3, "text", pa.array([SENTENCE, None, SENTENCE]).cast(kind))
    whole = whole.replace_schema_metadata({"made": "by hand"})
    pq.write_table(whole, ready / "in.parquet", row_group_size=2)
    privatize_file(ready / "in.parquet", ready / "out.parquet", **EXPERIMENT)
    out = pq.read_table(ready / "out.parquet")
    source = pq.read_table(ready / "in.parquet")
    read = source.schema.field("text").type
    wide = pa.dictionary(pa.int32(), read.value_type) if pa.types.is_dictionary(read) else read
    assert out.schema.equals(source.schema.set(3, pa.field("text", wide)))
    assert out.schema.metadata is None  # it may hold anything, and nothing protects it
    assert (
        out.drop_columns("text").to_pydict().__repr__()
        == source.drop_columns("text").to_pydict().__repr__()
    )
    made = out.column("text").cast(pa.string()).to_pylist()
    assert made[1] is None and SENTENCE not in made and all(made[::2])


def test_equal_texts_of_a_dictionary_become_different(ready):
    """More than its numbers had room for: 300 in 8 bits."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int8()), pa.array([SENTENCE]))
    pq.write_table(pa.table({"text": column}), ready / "in.parquet")
    privatize_file(ready / "in.parquet", ready / "out.parquet", **EXPERIMENT)
    assert len(set(pq.read_table(ready / "out.parquet").column("text").to_pylist())) > 128
    assert len(set(privatize(column, **EXPERIMENT).values.to_pylist())) > 128


def test_workers_change_no_byte(ready, monkeypatch):
    """A folder of three forms is read in chunks of three rows; another size of chunks changes no
    byte either.
    """
    folder = ready / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.csv").write_text(
        "id,text\n" + "".join(f"{i},{SENTENCE} {'so ' * i}\n" for i in range(10))
    )
    (folder / "deep/b.jsonl.gz").write_bytes(
        packed(lines(*({"text": f"{SENTENCE} {i}"} for i in range(8))), "gz")
    )
    pq.write_table(texts(*[SENTENCE, None] * 4), folder / "c.parquet")
    made = []
    for name, workers, rows in (("one", 1, 3), ("two", 2, 3), ("whole", 1, 2000)):
        monkeypatch.setattr(chunks, "ROWS_OF_A_CHUNK", rows)
        record = privatize_file(folder, ready / name, workers=workers, **EXPERIMENT).record
        assert record.counts.n_rows == 26
        tokens = pq.read_table(ready / f"{name}.tokens.parquet")
        made.append(
            (
                {
                    str(path.relative_to(ready / name)): unpacked(path)
                    for path in (ready / name).rglob("*.[cj]*")
                },
                pq.read_table(ready / name / "c.parquet"),
                tokens.to_pylist(),
                record.spent,
                record.counts,
            )
        )
    assert set(made[0][0]) == {"a.csv", "deep/b.jsonl.gz"}
    assert made[0] == made[1] == made[2]


def test_documents_without_a_word_cost_nothing(ready):
    """Alone in a file, too, where there is no average number of words."""
    (ready / "in.jsonl").write_bytes(
        lines({"id": 9, "text": ""}, {"id": 9, "text": " "}, {"id": 9, "text": None})
    )
    record = privatize_file(
        ready / "in.jsonl", ready / "out.jsonl", subject_column="id", **RELEASE
    ).operator
    assert record.ledger.epsilon_charged == 0 and record.ledger.documents_charged == 3
    assert [
        json.loads(line)["text"] for line in (ready / "out.jsonl").read_text().splitlines()
    ] == ["", "", None]
    with Ledger.open(".lexveil/ledger") as ledger:
        # those of the fixture
        assert ledger.database.rows("select count(*) from balances") == [(2,)]


FORMULAS = "text,id\n=,1\n+,2\n-,3\n@,4\nfire,=5\n"


@pytest.mark.parametrize(("formulas", "first"), [("keep", ""), ("quote", "'")])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_cells_that_a_spreadsheet_would_compute(ready, ending, formulas, first):
    """Counted and placed; only rewritten ones are touched."""
    comma = "," if ending == "csv" else "\t"
    out = ready / f"out.{ending}"
    (ready / f"in.{ending}").write_text(FORMULAS.replace(",", comma))
    record = privatize_file(
        ready / f"in.{ending}", out, formulas=formulas, punctuation="keep", **EXPERIMENT
    ).record
    rows = [line.split(comma) for line in out.read_text().splitlines()]
    assert [row[0] for row in rows[1:5]] == [f"{first}{mark}" for mark in "=+-@"]
    assert rows[5][1] == "=5"
    assert (record.counts.n_formula_cells, record.counts.first_formula_row) == (4, 1)


def test_a_text_that_becomes_empty_is_still_a_row(ready):
    """A text is still a row if all of its tokens are dropped. In a TSV with one column it would be
    a blank line, which is not a row.
    """
    written = {
        "csv": "text\n!!!\nfire\n",
        "tsv": "n\ttext\n\t!!!\n\tfire\n",
        "txt": "!!!\nfire\n",
        "jsonl": '{"text": "!!!"}\n{"text": "fire"}\n',
    }
    for ending, content in written.items():
        (ready / f"in.{ending}").write_text(content)
        privatize_file(
            ready / f"in.{ending}", ready / f"out.{ending}", punctuation="drop", **EXPERIMENT
        )
        record = privatize_file(
            ready / f"out.{ending}", ready / f"twice.{ending}", **EXPERIMENT
        ).record
        assert record.counts.n_rows == 2, ending
    (ready / "one.tsv").write_text("text\nfire\n!!!\n")
    with pytest.raises(RequestError, match=r"one\.tsv, line 3: a rewritten text is empty"):
        privatize_file(ready / "one.tsv", ready / "none.tsv", punctuation="drop", **EXPERIMENT)


COLUMN = [SENTENCE, None, "", f"{SENTENCE}!"]


def called(values, **more):
    done = privatize(values, **(EXPERIMENT | more))
    assert type(done.values) is type(values) and done.record.mode == "experiment"
    assert (
        set(done.token_log.column("row").to_pylist()) == {1, 4}
        and "column" not in done.token_log.column_names
    )
    return done


def test_the_python_call_gives_back_what_it_was_given(ready):
    """Lists, tuples, Arrow, pandas of either string type: the same texts for the same values, nulls
    where they were."""
    plain = called(COLUMN).values
    assert plain[1:3] == [None, ""] and plain[0] not in COLUMN and isinstance(plain[3], str)
    assert list(called(tuple(COLUMN)).values) == plain
    for kind in TEXT_TYPES[:4]:
        assert called(pa.array(COLUMN).cast(kind)).values.to_pylist() == plain
    assert called(pa.chunked_array([COLUMN[:1], COLUMN[1:]])).values.to_pylist() == plain
    for dtype in ("str", "object", "string"):
        series = pd.Series(COLUMN, index=[7, 7, 3, 1], name="body", dtype=dtype)
        made = called(series).values
        assert (
            made.index.tolist() == [7, 7, 3, 1]
            and made.name == "body"
            and made.dtype == series.dtype
        )
        assert [None if pd.isna(value) else value for value in made] == plain
    made = called(pd.Series(COLUMN, dtype="category")).values
    assert (
        made.dtype.name == "category"
        and [None if pd.isna(value) else value for value in made] == plain
    )


def test_texts_within_a_column_share_the_budget_of_their_row(ready):
    """Texts within a column share the budget of their row as the same texts in columns of their own
    do, in any number of processes and chunks.
    """
    rows = [[f"{SENTENCE} {place}" for place in range(row % 4)] for row in range(40)]
    within = [{"id": row, "m": [{"c": text} for text in texts]} for row, texts in enumerate(rows)]
    apart = [
        {f"t{place}": text for place, text in enumerate([*texts, *[None] * 3][:3])}
        for texts in rows
    ]
    found = []
    for name, objects, columns in (
        ("within", within, ("m[].c",)),
        ("apart", apart, ("t0", "t1", "t2")),
    ):
        source = ready / f"{name}.jsonl"
        out = ready / f"{name}.out.jsonl"
        source.write_text("".join(json.dumps(each) + "\n" for each in objects))
        done = privatize_file(source, out, **RELEASE, text_column=columns)
        assert done.operator is not None and done.operator.ledger is not None
        found.append((done.record.counts.n_texts, done.operator.ledger.epsilon_charged))
        said = " ".join(done.record.guarantee.because)
        assert ("how many there are" in said) == (name == "within")
    assert found[0] == found[1] and found[0][0] == sum(map(len, rows))
    after = [json.loads(line) for line in (ready / "within.out.jsonl").read_text().splitlines()]
    assert [len(each["m"]) for each in after] == [len(each["m"]) for each in within]
    assert SENTENCE not in (ready / "within.out.jsonl").read_text()
    seeded = {**EXPERIMENT, "text_column": ("m[].c",)}
    outs = []
    for workers in (1, 2):
        privatize_file(
            ready / "within.jsonl", ready / f"{workers}.jsonl", **seeded, workers=workers
        )
        outs.append((ready / f"{workers}.jsonl").read_bytes())
    assert outs[0] == outs[1]
