"""Writers of test files in every form that `lexveil data use` reads."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]


def json_lines(rows: Rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def delimited(rows: Rows, dialect: str = "excel") -> bytes:
    out = io.StringIO(newline="")
    plain: dict[str, Any] = (
        {"quoting": csv.QUOTE_NONE, "quotechar": None} if dialect == "excel-tab" else {}
    )
    writer = csv.DictWriter(out, list(rows[0]), dialect=dialect, **plain)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def write(path: Path, rows: Rows) -> Path:
    """Write ``rows`` in the form that the path's ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.removesuffix(".gz")
    match name.rpartition(".")[2]:
        case "csv":
            content = delimited(rows)
        case "tsv":
            content = delimited(rows, "excel-tab")
        case "parquet":
            content = parquet(rows)
        case "txt":
            content = "".join(f"{row['text']}\n" for row in rows).encode()
        case _:
            content = json_lines(rows)
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
