"""The bytes of an output follow from what is written, not from where the source's texts cut it into chunks."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.formats import chunks, parquet_tables
from tests.formats.rewriting import rewritten

N_ROWS = 4_500
# 6 MB that do not compress: several pages, blocks of every packer and, with 2,000 rows, two row groups.
BLOBS = [random.Random(row).randbytes(700).hex() + chr(0x100 + row) for row in range(N_ROWS)]
PACKED = {"": lambda content: content, "gz": gzip.compress, "zst": lambda content: pa.Codec("zstd").compress(content)}


def source_of(texts: list[str], folder: Path, form: str) -> Path:
    folder.mkdir()
    file = folder / f"in.{form}"
    table = pa.table({"text": texts, "blob": BLOBS, "few": [blob[0] for blob in BLOBS]})
    kind, _, packing = form.partition(".")
    if kind == "parquet":
        pq.write_table(table.set_column(2, "few", table.column("few").dictionary_encode()), file, row_group_size=700)
        return file
    rows = table.to_pylist()
    content = {
        "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in rows),
        "csv": lambda: "text,blob,few\n" + "".join(",".join(row.values()) + "\n" for row in rows),
        "txt": lambda: "".join(text + "\n" for text in texts),
    }[kind]()
    file.write_bytes(PACKED[packing](content.encode()))
    return file


def lengthened(file: Path) -> bytes:
    """The output's bytes where some rows are withheld and the others get the same texts, of many lengths."""
    return rewritten(file, lambda row: "word " * (row * 7919 % 60), lambda row: row % 500 > 0).read_bytes()


@pytest.mark.parametrize("form", ["jsonl.gz", "csv", "csv.zst", "txt", "parquet"])
def test_the_same_rows_are_the_same_bytes(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parquet_tables.GROUP_CHARACTERS == chunks.CHARACTERS  # of what is written: they stay
    monkeypatch.setattr(chunks, "CHARACTERS", 20_000)  # so that the sources are cut at other rows
    made = {
        name: lengthened(source_of([words * (row % length) or "x" for row in range(N_ROWS)], tmp_path / name, form))
        for name, words, length in (("short", "cat ", 3), ("long", "communication ", 40))
    }
    assert made["short"] == made["long"]
    assert len(made["short"]) > (1_000_000 if "txt" not in form else 1_000)
