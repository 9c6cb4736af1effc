"""Loading of the documents to be rewritten from data/documents."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.io.config import MachineParams
from lexveil.io.execution import duckdb_session

COLUMNS = ("doc_id", "split", "text", "text_b", "label", "attribute", "context")


def load_documents(
    folder: Path = paths.DOCUMENTS, machine: MachineParams | None = None
) -> pa.Table:
    """Load every document of every data set, ordered by (dataset, doc_id).

    Returns:
        A table with the columns dataset, doc_id, split, text, text_b, label, attribute, context,
            all strings; the columns from text_b on may be null. ``context`` is a second text that
            is not rewritten.

    Raises:
        RequestError: if there are no documents, a file is not readable, or a document has no doc_id
            or no text.
    """
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
    if not files:
        raise RequestError(
            f"{folder}: the folder has no document set (*.parquet); `lexveil data default` "
            "loads the embedded sets, and `lexveil data use --documents PATH` loads your "
            "own"
        )
    with duckdb_session.session(machine) as con:
        try:
            view_documents(con, files)
            documents = con.sql(duckdb_session.text("corpus/documents")).to_arrow_table()
        except (duckdb.InvalidInputException, duckdb.IOException):
            raise RequestError(
                f"{folder}: a file is not a sound Parquet file; `lexveil data use "
                f"--documents {folder}` names the file"
            ) from None
    for column in ("doc_id", "text"):
        if documents.column(column).null_count:
            row = documents.column(column).is_null().index(True).as_py()
            dataset = documents.column("dataset")[row]
            raise RequestError(
                f"{folder}/{dataset}.parquet: a row has no {column}; "
                f"`lexveil data use --documents {folder}` checks the files"
            )
    return documents


def view_documents(con: duckdb.DuckDBPyConnection, files: list[Path]) -> None:
    """Create the DuckDB view documents_raw over ``files``. The view has every column that
    sql/corpus/documents.sql names.
    """
    # The empty first half adds the columns that none of the files has.
    empty = ", ".join(f"null::varchar as {column}" for column in COLUMNS)
    con.execute(
        f"create or replace temp view documents_raw as select {empty}, null::varchar as "
        "filename where false "
        f"union all by name select * from read_parquet({duckdb_session.file_list(files)}, "
        "union_by_name = true, filename = true)"
    )
