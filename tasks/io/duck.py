"""DuckDB: bounded sessions, and running a file of sql/ with named parameters."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from tasks.errors import ParameterError
from tasks.io import paths
from tasks.io.params import MachineParams
from tasks.io.tables import atomic_file


@contextmanager
def session(machine: MachineParams | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that stays within ``machine.memory_limit`` and spills to its own temporary folder.

    Raises:
        ParameterError: if the memory limit is not one that DuckDB understands.
    """
    with tempfile.TemporaryDirectory(prefix="lexveil-duckdb-") as spill:
        config: dict[str, Any] = {
            "temp_directory": spill,
            "autoinstall_known_extensions": False,  # nothing is fetched behind the user's back
            "autoload_known_extensions": False,
        }
        if machine is not None:
            if not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", machine.memory_limit):
                raise ParameterError(
                    f"params.yaml: machine.memory_limit is {machine.memory_limit!r}; write for example 2GB"
                )
            config |= {"memory_limit": machine.memory_limit, "threads": machine.threads}
        with duckdb.connect(config=config) as con:
            con.execute("set enable_progress_bar = false")
            yield con


def text(name: str) -> str:
    """The SQL of sql/NAME.sql."""
    return (paths.SQL / f"{name}.sql").read_text(encoding="utf-8")


def run(con: duckdb.DuckDBPyConnection, name: str, **parameters: object) -> duckdb.DuckDBPyConnection:
    """Run sql/NAME.sql, one SELECT; fetch the result before the next statement."""
    return con.execute(text(name), parameters)


def create(con: duckdb.DuckDBPyConnection, table: str, name: str, **parameters: object) -> None:
    """Keep the result of sql/NAME.sql as a temporary table of this session."""
    con.execute(f'create or replace temp table "{table}" as {text(name)}', parameters)


def materialize(con: duckdb.DuckDBPyConnection, name: str, out: Path, **parameters: object) -> int:
    """Write the result of sql/NAME.sql to a Parquet file and return its number of rows."""
    with atomic_file(out) as partial:
        query = text(name).rstrip().rstrip(";")
        con.execute(f"copy ({query}) to '{partial}' (format parquet, compression zstd)", parameters)
        row = con.fetchone()
    assert row is not None
    return int(row[0])


def view(con: duckdb.DuckDBPyConnection, name: str, *files: Path) -> None:
    """Make Parquet files readable under ``name``."""
    con.execute(f'create or replace temp view "{name}" as select * from read_parquet({file_list(files)})')


def file_list(files: Iterable[Path]) -> str:
    """Paths as a list literal of SQL, for what takes no parameter there."""
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"
