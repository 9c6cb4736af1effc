"""Every kind of input that is refused; what is said of each stands in
docs/reference/bad-input.md."""

import bz2
import gzip
import io
import json
import lzma
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "Zanzibar"  # stands in every text, and must stand in no message


@dataclass(frozen=True, slots=True)
class Bad:
    """An input that is refused.

    Attributes:
        name: of the file that is given to `lexveil privatize`; of one in a folder, the folder is
            given.
        content: of it; what is large is made when it is asked for, and not in every worker that
            collects tests.
        options: of the command, beside those that every case has.
        out: the name of the output; None for one that fits the input.
        beside: other files by their names; of links, what they point at.
        prepare: what else to do in the folder beforehand.
        budget: epsilon or document budget.
    """

    name: str
    content: bytes | Callable[[], bytes] | None
    options: tuple[str, ...] = ()
    out: str | None = None
    beside: dict[str, bytes | str] = field(default_factory=dict)
    prepare: Callable[[Path], object] = lambda folder: None
    budget: tuple[str, ...] = ("--epsilon", "10")

    def write(self, folder: Path) -> None:
        """Put the input into a folder."""
        if self.content is not None:
            (folder / self.name).parent.mkdir(exist_ok=True, parents=True)
            (folder / self.name).write_bytes(
                self.content() if callable(self.content) else self.content
            )
        for name, content in self.beside.items():
            (folder / name).parent.mkdir(exist_ok=True)
            if isinstance(content, str):
                (folder / name).symlink_to(content)
            else:
                (folder / name).write_bytes(content)
        self.prepare(folder)


def lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in objects)


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def packed(content: bytes, packing: str) -> bytes:
    if packing == "zst":
        return pa.Codec("zstd").compress(content, asbytes=True)
    if packing in ("bz2", "xz"):  # two streams on end, as the tools make of two files
        compress = bz2.compress if packing == "bz2" else lzma.compress
        return compress(content[:9]) + compress(content[9:])
    return gzip.compress(content, mtime=0) if packing == "gz" else content


def texts(*values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"id": pa.array(range(len(values))), "text": pa.array(values, kind)})


def spoiled(content: bytes) -> bytes:
    """Return a content with other bytes in the middle."""
    middle = len(content) // 2
    return (
        content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 500])
        + content[middle + 500 :]
    )


def not_utf8() -> bytes:
    """Parquet whose strings are none, as careless writers make them."""
    return parquet(
        pa.table(
            {"text": pa.array([b"ok", b"ok", f"{SECRET} \xe9".encode("latin-1")]).view(pa.string())}
        )
    )


def damaged_parquet() -> bytes:
    """The foot is whole, a page is not."""
    table = texts(*[f"{SECRET} {i * 7919}" for i in range(5000)])
    return spoiled(parquet(table, row_group_size=1000, use_dictionary=False))


def fixed_lists() -> bytes:
    """Arrays of DuckDB, one of them null."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as con:
        con.execute(
            f"copy (select '{SECRET}' as text, case when i > 0 then [1, 2, 3]::int[3] end as v "
            f"from range(2) t(i)) to '{folder}/f.parquet'"
        )
        return Path(folder, "f.parquet").read_bytes()


GOOD = {"id": 1, "text": f"fine {SECRET}"}
MANY = lines(*({"id": i, "text": f"{SECRET} {i * 7919}"} for i in range(3_000)))


COLUMNS = ("--text-column", "text", "--text-column", "body")
ABOUT = ("--subject-column", "id")
WITHIN = ("--text-column", "messages[].content")
CHAT = {"id": 1, "messages": [{"role": "user", "content": f"this is fine {SECRET}"}]}

BAD: dict[str, Bad] = {
    # text that is none
    "not UTF-8, CSV": Bad("f.csv", b"id,text\n1,ok\n2,Zanzibar \xe9\n"),
    "not UTF-8, text": Bad("f.txt", b"ok\nZanzibar \xff\n"),
    "not UTF-8, Parquet": Bad("f.parquet", not_utf8()),
    "not in the named encoding": Bad(
        "f.csv", "text\nZanzibar \xe9\n".encode("latin-1"), ("--encoding", "ascii")
    ),
    "an unknown encoding": Bad("f.csv", b"text\nZanzibar\n", ("--encoding", "hex")),
    "UTF-16 without a byte order mark": Bad("f.csv", f"text\n{SECRET}\n".encode("utf-16-le")),
    "a NUL byte, text": Bad("f.txt", b"ok\nZanzibar\0\n"),
    "a NUL byte, JSON": Bad("f.jsonl", lines(GOOD) + b'{"text": "Zanzibar\0"}\n'),
    "a NUL character, Parquet": Bad("f.parquet", parquet(texts("ok", f"{SECRET}\0"))),
    "an unpaired surrogate": Bad("f.jsonl", lines(GOOD, {"text": f"{SECRET}\ud800"})),
    "an unpaired surrogate in a subject": Bad(
        "f.jsonl", lines(GOOD, {"id": f"{SECRET}\ud800", "text": "x"}), ABOUT
    ),
    "a Chinese text": Bad(
        "f.jsonl", lines(GOOD, {"text": f"{SECRET} 这家餐厅的服务非常好，下次还会再来。"})
    ),
    # sizes
    "an empty file, JSON": Bad("f.jsonl", b""),
    "an empty file, Parquet": Bad("f.parquet", b""),
    "an empty file, zst": Bad("f.jsonl.zst", b""),
    "blank lines, text": Bad("f.txt", b"\n  \n"),
    "a header only, CSV": Bad("f.csv", b"id,text\n"),
    "no rows, Parquet": Bad("f.parquet", parquet(texts(kind=pa.string()))),
    # columns
    "a missing text column, JSON": Bad("f.jsonl", lines({"label": SECRET, "id": 1})),
    "a missing subject column": Bad("f.jsonl", lines(GOOD), ("--subject-column", "who")),
    "a CSV without its header": Bad("f.csv", b"Zanzibar is where I went, really far\nx,y\n"),
    "a later object without the text": Bad("f.jsonl", lines(GOOD, {"id": 2, "txt": SECRET})),
    "a duplicate column, CSV": Bad("f.csv", b"text,text\na,b\n"),
    "a duplicate text, JSON": Bad("f.jsonl", lines(GOOD) + b'{"text": "a", "text": "Zanzibar"}\n'),
    "a duplicate subject, JSON": Bad(
        "f.jsonl", lines(GOOD) + b'{"id": 1, "text": "Zanzibar", "\\u0069d": 2}\n', ABOUT
    ),
    "a duplicate column, Parquet": Bad(
        "f.parquet", parquet(pa.table([["a"], ["b"]], names=["text", "text"]))
    ),
    "a row without a subject": Bad("f.jsonl", lines(GOOD, {"id": None, "text": SECRET}), ABOUT),
    "a list for a subject": Bad("f.jsonl", lines(GOOD, {"id": [SECRET], "text": "a"}), ABOUT),
    "a column named for a text file": Bad("f.txt", b"Zanzibar\n", COLUMNS),
    # values
    "a number for a text": Bad("f.jsonl", lines(GOOD, {"text": 5})),
    "a column of numbers, Parquet": Bad("f.parquet", parquet(texts(5))),
    "a column of bytes, Parquet": Bad("f.parquet", parquet(texts(SECRET.encode()))),
    "a column of an extension type, Parquet": Bad(
        "f.parquet",
        parquet(
            texts("ok").append_column(
                "note",
                pa.ExtensionArray.from_storage(
                    pa.opaque(pa.string(), SECRET, SECRET), pa.array(["x"])
                ),
            )
        ),
    ),
    # syntax
    "texts inside a column, without their path": Bad("f.jsonl", lines(CHAT)),
    "a path that an object lacks": Bad(
        "f.jsonl", lines(CHAT, {"messages": [{"text": SECRET}]}), WITHIN
    ),
    "a path that an object contains twice": Bad(
        "f.jsonl",
        lines(CHAT) + b'{"messages": [{"content": "a", "content": "Zanzibar"}]}\n',
        WITHIN,
    ),
    "a path through a text": Bad("f.jsonl", lines(CHAT, {"messages": SECRET}), WITHIN),
    "a path to a number": Bad("f.jsonl", lines(CHAT, {"messages": [{"content": 5}]}), WITHIN),
    "a path together with spans": Bad("f.jsonl", lines(CHAT), (*WITHIN, "--spans", "id")),
    "broken JSON": Bad("f.jsonl", lines(GOOD) + b"\n" + b'{"text": "Zanzibar\n'),
    "a JSON array": Bad("f.json", json.dumps([GOOD], indent=1).encode()),
    "a pretty-printed object": Bad("f.json", json.dumps(GOOD, indent=1).encode()),
    "too many fields, CSV": Bad("f.csv", b"text,label\na,1\nZanzibar,b,1\n"),
    "too few fields, CSV": Bad("f.csv", b'text,label\n"a\nb",1\nZanzibar\n'),
    "too many fields, TSV": Bad("f.tsv", b"text\tlabel\na\t1\nZanzibar\tb\t1\n"),
    "two possible delimiters": Bad("f.csv", b"text,id;note\nZanzibar,a;b\n"),
    "a delimiter for JSON": Bad("f.jsonl", lines(GOOD), ("--delimiter", "tab")),
    "a delimiter of two characters": Bad("f.csv", b"text\nZanzibar\n", ("--delimiter", "::")),
    "an open quote": Bad("f.csv", b'text\nok\n"Zanzibar\n'),
    # damage
    "a Parquet name without Parquet content": Bad("f.parquet", lines(GOOD)),
    "lists of a fixed length, DuckDB": Bad("f.parquet", fixed_lists),
    "Parquet with a damaged page": Bad("f.parquet", damaged_parquet),
    "a truncated gz file": Bad("f.jsonl.gz", packed(MANY, "gz")[:-100]),
    "a truncated zst file": Bad("f.jsonl.zst", packed(MANY, "zst")[:-100]),
    "a gz file truncated at its end": Bad("f.jsonl.gz", packed(lines(GOOD), "gz")[:-4]),
    "a zst file truncated at its end": Bad("f.jsonl.zst", packed(lines(GOOD), "zst")[:-1]),
    "a damaged gz file": Bad("f.jsonl.gz", packed(lines(GOOD), "gz")[:-8] + bytes(8)),
    "a damaged zst file": Bad("f.jsonl.zst", spoiled(packed(MANY, "zst"))),
    "a gz name without gz content": Bad("f.jsonl.gz", lines(GOOD)),
    "a truncated bz2 file": Bad("f.jsonl.bz2", bz2.compress(MANY)[:-100]),
    "a truncated xz file": Bad("f.jsonl.xz", lzma.compress(MANY)[:-100]),
    "a damaged bz2 file": Bad("f.jsonl.bz2", spoiled(bz2.compress(MANY))),
    "a damaged xz file": Bad("f.jsonl.xz", spoiled(lzma.compress(MANY))),
    "an xz name without xz content": Bad("f.jsonl.xz", lines(GOOD)),
    "a too high compression ratio, xz": Bad(
        "f.jsonl.xz", lambda: lzma.compress(lines({"text": "a", "b": "x" * 1000}) * 3000)
    ),
    "zst content under another name": Bad("f.csv", packed(lines(GOOD), "zst")),
    "a spreadsheet under another name": Bad("f.csv", b"PK\x03\x04Zanzibar"),
    "bzip2 content under another name": Bad("f.csv", bz2.compress(b"text\nZanzibar\n")),
    "Parquet content under another name": Bad("f.csv", parquet(texts(SECRET))),
    "an unknown file name ending": Bad("f.xlsx", b"PK"),
    "a line of 50 MB, JSON": Bad(
        "f.jsonl", lambda: lines(GOOD) + b'{"text": "' + b"Zanzibar " * 5_600_000 + b'"}\n'
    ),
    "a field of 50 MB over many lines": Bad(
        "f.csv", lambda: b'text\nok\n"' + b"Zanzibar\n" * 5_600_000 + b'"\n'
    ),
    "a text of 9 Mi characters": Bad("f.jsonl", lambda: lines(GOOD, {"text": "Zanzibar " * 2**20})),
    "a text of 9 Mi characters, Parquet": Bad(
        "f.parquet", lambda: parquet(texts("ok", "Zanzibar " * 2**20))
    ),
    "a too high compression ratio, gz": Bad(
        "f.jsonl.gz", lambda: packed(lines({"text": "a", "b": "x" * 1000}) * 3000, "gz")
    ),
    "a too high compression ratio, Parquet": Bad(
        "f.parquet",
        lambda: parquet(texts(*["a" * 2**20] * 70), compression="zstd", use_dictionary=False),
    ),
    # what stands at a path
    "no such file": Bad("f.jsonl", None),
    "a pipe": Bad("f.jsonl", None, prepare=lambda folder: os.mkfifo(folder / "f.jsonl")),
    "a link to nowhere": Bad("f.jsonl", None, beside={"f.jsonl": "nowhere.jsonl"}),
    "a link to itself in a folder": Bad("d/a.jsonl", lines(GOOD), beside={"d/b.jsonl": "b.jsonl"}),
    "an empty folder": Bad("d", None, prepare=lambda folder: (folder / "d").mkdir()),
    "a folder with a bad file": Bad(
        "d/a.jsonl", lines(GOOD), beside={"d/b.jsonl": lines(GOOD, {"text": 5})}
    ),
    "a folder with other columns": Bad(
        "d/a.jsonl", lines(GOOD), beside={"d/b.csv": b"id,body\n1,Zanzibar\n"}
    ),
    "an input name that is too long": Bad("f" * 300 + ".jsonl", None),
    # where to write
    "the output is the input": Bad("f.jsonl", lines(GOOD), out="f.jsonl"),
    "the output is a link to the input": Bad(
        "f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl": "f.jsonl"}
    ),
    "the output is another name of the input": Bad(
        "f.jsonl",
        lines(GOOD),
        out="o.jsonl",
        prepare=lambda f: (f / "o.jsonl").hardlink_to(f / "f.jsonl"),
    ),
    "the output exists": Bad("f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl": b"x"}),
    "the output is a link": Bad("f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl": "no"}),
    "the output is a folder": Bad("f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl/x": b""}),
    "the output has another ending than the input": Bad("f.jsonl", lines(GOOD), out="o.csv"),
    "the output's folder does not exist": Bad("f.jsonl", lines(GOOD), out="no/o.jsonl"),
    "the output's name is too long": Bad("f.jsonl", lines(GOOD), out="o" * 249 + ".jsonl"),
    "the output's name is not UTF-8": Bad("f.jsonl", lines(GOOD), out="\udcffo.jsonl"),
    "the output's folder is not UTF-8": Bad(
        "f.jsonl", lines(GOOD), out="d\udcff/o.jsonl", prepare=lambda f: (f / "d\udcff").mkdir()
    ),
    "the output's path is too long": Bad(
        "f.jsonl", lines(GOOD), out="/".join(["o" * 200] * 25) + ".jsonl"
    ),
    "a file name in a folder that is not UTF-8": Bad(
        "d/a.jsonl", lines(GOOD), beside={"d/b\udcff.jsonl": lines(GOOD)}
    ),
    "a subfolder name that is not UTF-8": Bad("d/b\udcff/a.jsonl", lines(GOOD)),
    "a file name in a folder that is too long while it is written": Bad(
        "d/a.jsonl", lines(GOOD), beside={"d/" + "o" * 247 + ".jsonl": lines(GOOD)}
    ),
    "the output folder cannot be made": Bad(
        "d/f.jsonl", lines(GOOD), out="proc/out", beside={"proc": "/proc"}
    ),
    "a record exists": Bad(
        "f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl.record.json": b"x"}
    ),
    "a record is a link": Bad(
        "f.jsonl", lines(GOOD), out="o.jsonl", beside={"o.jsonl.record.json": "no"}
    ),
    "the output folder is in the input folder": Bad("d/f.jsonl", lines(GOOD), out="d/o"),
    "the output folder is not empty": Bad("d/f.jsonl", lines(GOOD), out="o", beside={"o/x": b"x"}),
    "a folder to standard output": Bad("d/f.jsonl", lines(GOOD), out="-"),
    "Parquet to standard output": Bad("f.parquet", parquet(texts("a")), out="-"),
    # how much
    "an epsilon of 0": Bad("f.jsonl", lines(GOOD), budget=("--epsilon", "0")),
    "a document budget that is not a number": Bad(
        "f.jsonl", lines(GOOD), budget=("--document-budget", "nan")
    ),
    "a level and average words": Bad(
        "f.jsonl", lines(GOOD), ("--average-words", "9"), budget=("--protection", "light")
    ),
    "no column with texts": Bad("f.csv", b"id,code\n1,a7\n"),
    "several columns that could hold texts": Bad(
        "f.csv", f"id,review,note\n1,{SECRET},x\n".encode()
    ),
    "both epsilon and budget": Bad("f.jsonl", lines(GOOD), ("--document-budget", "5")),
    # a cell that a spreadsheet would compute
    "a formula, with --formulas refuse": Bad("f.csv", b"text\nok\n=\n", ("--formulas", "refuse")),
}
