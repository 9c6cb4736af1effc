"""A million short texts of a real PostgreSQL: read, rewritten, written back; rows a second and peak memory.

    uv run python -m benchmarks.databases ADDRESS [--rows 1000000] [--workers 1]

ADDRESS is a database in which tables may be made, such as postgresql://localhost/benchmark. Each step is a process of
its own, whose processor seconds and largest resident memory the system counts: `read` spools the query, `copy` also
writes it to a table as it is, `release` rewrites it, charged to a ledger of its own. The memory of a few rows stands
beside that of all: what differs is what grows with the table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from lexveil.databases.base import driver

WORDS = "the people said that the fire near the road was under control but water in town is still not clean".split()
READ = "import sys; from lexveil.databases.address import read_address as a; from lexveil.databases.query import *; "
READ += "import pyarrow.parquet; spool_query(a(sys.argv[1]), sys.argv[2], open(sys.argv[3], 'wb'))"
HOW = ["--mechanism", "diffractor_geometric", "--strategy", "S1", "--document-budget", "300", "--subject-column", "id"]
NONE = ["--mechanism", "none", "--strategy", "none", "--mode", "experiment"]


def execute(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements; the rows of the last."""
    dbapi = driver("adbc_driver_postgresql.dbapi")
    rows: list[tuple[Any, ...]] = []
    with closing(dbapi.connect(address, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
    return rows


def measure(step: str, n_rows: int, command: list[str], folder: Path) -> dict[str, Any]:
    """Run a command; what it took."""
    start = time.perf_counter()
    with (folder / "log").open("w", encoding="utf-8") as log:
        environment = os.environ | {"LEXVEIL_HOME": str(folder / f"home-{step}-{n_rows}")}
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit((folder / "log").read_text(encoding="utf-8"))
    seconds = time.perf_counter() - start
    processor = usage.ru_utime + usage.ru_stime
    return {
        "step": step,
        "rows": n_rows,
        "cpu_seconds": processor,
        "seconds": seconds,
        "rows_per_cpu_second": n_rows / processor,
        "peak_mib": usage.ru_maxrss / 2**10,
    }


def main() -> None:
    """Make the table, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    words = ", ".join(f"'{word}'" for word in WORDS)
    text = f"(select string_agg((array[{words}])[1 + (i * 7 + j * j * (i % 13 + 1)) % {len(WORDS)}], ' ') "
    text += "from generate_series(1, 8) j)"
    execute(
        given.address,
        "drop table if exists benchmark_texts, benchmark_copy, benchmark_private, lexveil_records",
        f"create table benchmark_texts as select i as id, {text} as text, now() as at from generate_series(1, "
        f"{given.rows}) i",
    )
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n_rows in (given.few, given.rows):
            query = f"select * from benchmark_texts where id <= {n_rows}"
            rows.append(measure("read", n_rows, [sys.executable, "-c", READ, given.address, query, "rows"], folder))
            rows[-1]["file_mib"] = (folder / "rows").stat().st_size / 2**20
            for step, table, how in (("copy", "benchmark_copy", NONE), ("release", "benchmark_private", HOW)):
                execute(given.address, f"drop table if exists {table}")
                for left in folder.glob(f"{table}*"):
                    left.unlink()
                command = [sys.executable, "-m", "lexveil.cli", "privatize", given.address, "--sql", query, "-o"]
                command += [given.address, "--table", table, *how, "--workers", str(given.workers)]
                rows.append(measure(step, n_rows, command, folder))
                ((written,),) = execute(given.address, f"select count(*) from {table}")
                if written != n_rows:
                    sys.exit(f"{table} has {written} rows")
    print_table(
        {
            "step": "step",
            "rows": "rows",
            "cpu_seconds": "CPU s",
            "seconds": "s",
            "rows_per_cpu_second": "rows/CPU s",
            "peak_mib": "peak MiB",
            "file_mib": "spooled MiB",
        },
        rows,
    )


if __name__ == "__main__":
    main()
