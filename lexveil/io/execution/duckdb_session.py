"""DuckDB sessions with limited resources, and functions that run a file of sql/ with named
parameters.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import LexveilError, ParameterError
from lexveil.base.runtime.tables import PARQUET, atomic_file
from lexveil.io.config import MachineParams
from lexveil.io.config.operation import MEMORY

SPILL = "lexveil-duckdb"


@contextmanager
def session(machine: MachineParams | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that stays within ``machine.memory_limit``. Rows that exceed the
    limit are spilled to a temporary folder of this session.

    Args:
        machine: settings with memory limit, threads and temporary folder; None takes DuckDB's own
            limits and the system's folder.

    Raises:
        ParameterError: if the folder cannot be created.
        LexveilError: if memory and folder are full.
    """
    with _spill_folder(machine) as spill:
        config: dict[str, Any] = {
            "temp_directory": spill,
            "autoinstall_known_extensions": False,  # download nothing without the user's knowledge
            "autoload_known_extensions": False,
        }
        if machine is not None:
            config |= {"memory_limit": machine.memory_limit, "threads": machine.threads}
        with duckdb.connect(config=config) as con:
            con.execute("set enable_progress_bar = false")
            try:
                yield con
            except duckdb.OutOfMemoryException as error:
                raise LexveilError(
                    f"memory and the folder for spilled rows, {spill}, are full; free some "
                    "space in that folder, set machine.temp_directory of lexveil.toml to a "
                    "folder on a larger disk, or raise machine.memory_limit"
                ) from error


@contextmanager
def _spill_folder(machine: MachineParams | None) -> Iterator[str]:
    """Yield a temporary folder for the spilled rows of this DuckDB session. Folders that killed
    processes of this machine have left are removed first.
    """
    parent = None
    host = re.sub(r"\W", "_", platform.node())  # other machines may use the same parent folder
    if machine is not None:
        parent = Path(machine.temp_directory)
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"lexveil.toml: machine.temp_directory is {machine.temp_directory!r}, which "
                f"cannot be created ({error.strerror}); name a writable folder"
            ) from None
        for left in parent.glob(f"{SPILL}-{host}-*-*"):
            pid = left.name.removeprefix(f"{SPILL}-{host}-").split("-")[0]
            if pid.isdecimal() and not psutil.pid_exists(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{SPILL}-{host}-{os.getpid()}-", dir=parent) as spill:
        yield spill


def share(machine: MachineParams) -> MachineParams:
    """Return the share of memory and threads that each of ``machine.workers`` workers may use, as
    machine settings, if all workers run at the same time.
    """
    memory = max(memory_bytes(machine) // (1000 * machine.workers), 1)
    return machine.model_copy(
        update={
            "memory_limit": f"{memory}KB",
            "threads": max(machine.threads // machine.workers, 1),
        }
    )


def memory_bytes(machine: MachineParams) -> int:
    """Return ``machine.memory_limit`` in bytes."""
    written = re.fullmatch(MEMORY, machine.memory_limit)
    assert written is not None
    number, unit, binary = written.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" KMGT".index(unit.upper())))


def text(name: str) -> str:
    """Return the SQL text of the file sql/NAME.sql."""
    return paths.query(name).read_text(encoding="utf-8")


def run(
    con: duckdb.DuckDBPyConnection, name: str, **parameters: object
) -> duckdb.DuckDBPyConnection:
    """Run sql/NAME.sql, which is one SELECT statement, and return its result. Fetch the result
    before the next statement.
    """
    return con.execute(text(name), parameters)


def create(con: duckdb.DuckDBPyConnection, table: str, name: str, **parameters: object) -> None:
    """Store the result of sql/NAME.sql as a temporary table of this session."""
    con.execute(f'create or replace temp table "{table}" as {text(name)}', parameters)


def materialize(
    con: duckdb.DuckDBPyConnection,
    name: str,
    out: Path,
    *,
    group_rows: int = 122_880,
    **parameters: object,
) -> int:
    """Write the result of the query sql/NAME.sql to a Parquet file, and return the number of rows.

    Args:
        group_rows: rows per row group. A program that reads the file has one group in memory, so
            rows of text need small groups.
    """
    with atomic_file(out) as partial:
        query = text(name).rstrip().rstrip(";")
        options = f"format parquet, compression zstd, row_group_size {group_rows}"
        con.execute(f"copy ({query}) to '{partial}' ({options})", parameters)
        row = con.fetchone()
    assert row is not None
    return int(row[0])


def materialize_parts(
    con: duckdb.DuckDBPyConnection,
    name: str,
    out: Path,
    parts: Sequence[Mapping[str, object]],
    *,
    group_rows: int,
) -> int:
    """Write the results of the query sql/NAME.sql for several sets of parameters, one after
    another, to one Parquet file.

    Args:
        parts: parameters of each result, at least one. The division into results changes no byte of
            the file.
        group_rows: rows per row group.

    Returns:
        Number of rows.
    """
    rows = 0
    with atomic_file(out) as partial, ExitStack() as stack:
        writer = waiting = None
        for parameters in parts:
            reader = con.sql(text(name), params=parameters).to_arrow_reader(group_rows)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(partial, reader.schema, **PARQUET))
                waiting = reader.schema.empty_table()
            for batch in reader:
                rows += batch.num_rows
                waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
                if n_full := waiting.num_rows - waiting.num_rows % group_rows:
                    writer.write_table(waiting.slice(0, n_full), row_group_size=group_rows)
                    waiting = waiting.slice(n_full)
        if writer is not None and waiting:
            writer.write_table(waiting, row_group_size=group_rows)
    return rows


def view(con: duckdb.DuckDBPyConnection, name: str, *files: Path) -> None:
    """Create a DuckDB view with this name over Parquet files."""
    con.execute(
        f'create or replace temp view "{name}" as select * from read_parquet({file_list(files)})'
    )


def file_list(files: Iterable[Path]) -> str:
    """Return paths as an SQL list literal, for statements that accept no parameter in place of a
    list.
    """
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"
