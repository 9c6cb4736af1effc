"""Properties that an output shares with its source: columns and types, no metadata. Its bytes do
not depend on the chunks.
"""

import bz2
import gzip
import json
import lzma
import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.io.formats import chunks, parquet_tables
from lexveil.io.formats.readers import Reader, open_writer
from lexveil.io.formats.registry import as_source


def rewritten(
    file,
    text=lambda row: "word",
    is_kept=lambda row: True,
):
    """The file that comes of it; texts and what is kept follow from the number of the row, from
    1."""
    source = as_source(file)
    out = file.with_name(f"out{''.join(file.suffixes)}")
    writer = None
    assert source is not None
    reader = Reader(source, ("text",))
    for chunk in reader.chunks():
        writer = writer or open_writer(reader, out)
        rows = range(chunk.first, chunk.first + len(chunk))
        writer.write(
            chunk,
            [[text(row)] for row in rows],
            np.array([is_kept(row) for row in rows], dtype=np.bool_),
        )
    assert writer is not None
    writer.__exit__(None, None, None)
    return out


CANARY = "Zanzibar"


def written(table, folder, withheld=None):
    """The file that comes of a table whose texts are replaced, without one of its rows."""
    pq.write_table(table, folder / "in.parquet")
    return rewritten(folder / "in.parquet", is_kept=lambda row: row != withheld)


def test_metadata_is_not_passed_on(tmp_path):
    """Metadata of the file, of fields and of nested fields is dropped."""
    inner = pa.field("l", pa.list_(pa.field("element", pa.string(), metadata={"k": CANARY})))
    table = pa.table(
        {
            "text": pa.array([CANARY, "b"]),
            "n": pa.array([1, 2]),
            "nested": pa.array([{"l": ["x"]}] * 2, pa.struct([inner])),
        }
    )
    table = table.cast(table.schema.set(1, pa.field("n", pa.int64(), metadata={CANARY: "1"})))
    table = table.replace_schema_metadata({CANARY: CANARY, "pandas": CANARY})
    out = written(table, tmp_path)
    assert CANARY.encode() not in out.read_bytes()
    assert pq.read_table(out).to_pylist() == [
        {"text": "word", "n": 1, "nested": {"l": ["x"]}},
        {"text": "word", "n": 2, "nested": {"l": ["x"]}},
    ]


@pytest.mark.parametrize("index", [pa.int8(), pa.int32()])
@pytest.mark.parametrize("kind", ["plain", "list", "large_list", "fixed", "struct", "map", "deep"])
def test_a_dictionary_holds_what_rows_hold(tmp_path, kind, index):
    """Arrow writes all entries of a dictionary, wherever in a column it stands."""
    values = (
        pa.array(["ana", f"{CANARY} 2", "ben"])
        .dictionary_encode()
        .cast(pa.dictionary(index, pa.string()))
    )
    offsets = pa.array([0, 1, 2, 3])
    nested = {
        "plain": lambda: values,
        "list": lambda: pa.ListArray.from_arrays(offsets.cast(pa.int32()), values),
        "large_list": lambda: pa.LargeListArray.from_arrays(offsets, values),
        "fixed": lambda: pa.FixedSizeListArray.from_arrays(values, 1),
        "struct": lambda: pa.StructArray.from_arrays([values], ["x"]),
        "map": lambda: pa.MapArray.from_arrays(
            offsets.cast(pa.int32()), pa.array(["k"] * 3), values
        ),
        "deep": lambda: pa.StructArray.from_arrays(
            [pa.ListArray.from_arrays(offsets.cast(pa.int32()), values)], ["x"]
        ),
    }[kind]()
    out = written(
        pa.table({"text": pa.array([CANARY, "b", "c"]).dictionary_encode(), "n": nested}),
        tmp_path,
        withheld=2,
    )
    assert CANARY.encode() not in out.read_bytes()
    read = pq.read_table(out)
    source = pq.read_table(tmp_path / "in.parquet")
    assert read.schema.types == source.schema.types
    assert read.column("n").to_pylist() == [source.column("n")[row].as_py() for row in (0, 2)]


def test_what_was_read_is_not_kept(tmp_path):
    """Arrow would keep the bytes of all row groups until the last is read: the size of the file."""
    table = pa.table({"text": [random.Random(row).randbytes(500).hex() for row in range(16_000)]})
    pq.write_table(
        table, tmp_path / "in.parquet", row_group_size=500, compression="none", use_dictionary=False
    )
    source = as_source(tmp_path / "in.parquet")
    assert source is not None and source.path.stat().st_size > 15_000_000
    del table
    tracemalloc.start()
    try:
        n_rows = sum(len(chunk) for chunk in Reader(source, ["text"]).chunks())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_rows == 16_000 and most < 12_000_000


N_ROWS = 4_500
# 6 MB that do not compress: several pages, blocks of every packer and, with 2,000 rows, two row
# groups.
BLOBS = [random.Random(row).randbytes(700).hex() + chr(0x100 + row) for row in range(N_ROWS)]
PACKED = {
    "": lambda content: content,
    "gz": gzip.compress,
    "zst": lambda content: pa.Codec("zstd").compress(content),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def source_of(texts, folder, form):
    folder.mkdir()
    file = folder / f"in.{form}"
    table = pa.table({"text": texts, "blob": BLOBS, "few": [blob[0] for blob in BLOBS]})
    kind, _, packing = form.partition(".")
    if kind == "parquet":
        pq.write_table(
            table.set_column(2, "few", table.column("few").dictionary_encode()),
            file,
            row_group_size=700,
        )
        return file
    rows = table.to_pylist()
    content = {
        "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in rows),
        "csv": lambda: "text,blob,few\n" + "".join(",".join(row.values()) + "\n" for row in rows),
        "txt": lambda: "".join(text + "\n" for text in texts),
    }[kind]()
    file.write_bytes(PACKED[packing](content.encode()))
    return file


def lengthened(file):
    """The output's bytes where some rows are withheld and the others get the same texts, of many
    lengths."""
    return rewritten(
        file, lambda row: "word " * (row * 7919 % 60), lambda row: row % 500 > 0
    ).read_bytes()


@pytest.mark.parametrize(
    "form", ["jsonl.gz", "csv", "csv.zst", "txt", "parquet", "csv.bz2", "txt.xz"]
)
def test_the_same_rows_are_the_same_bytes(form, tmp_path, monkeypatch):
    assert (
        parquet_tables.GROUP_CHARACTERS == chunks.CHARACTERS_OF_A_CHUNK
    )  # of what is written: they stay
    monkeypatch.setattr(
        chunks, "CHARACTERS_OF_A_CHUNK", 20_000
    )  # so that the sources are cut at other rows
    made = {
        name: lengthened(
            source_of(
                [words * (row % length) or "x" for row in range(N_ROWS)], tmp_path / name, form
            )
        )
        for name, words, length in (("short", "cat ", 3), ("long", "communication ", 40))
    }
    assert made["short"] == made["long"]
    assert len(made["short"]) > (1_000_000 if "txt" not in form else 1_000)
