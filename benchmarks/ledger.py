"""Speed and memory of the ledger: documents reserved per second, with as many subjects as
documents, with a tenth as many subjects, and with one subject.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.table import print_table
from lexveil.release.ledger.ledger import Ledger

BATCH = 2_000  # documents in one request
BULK = 50_000  # subjects in one batch of a bulk reservation


def reserve(
    n_documents: int, n_subjects: int, cap: float | None, folder: Path
) -> list[dict[str, Any]]:
    """Reserve for two releases of the same documents, one after another; the second release finds
    the balances of the first.
    """
    rows = []
    with Ledger.open(folder) as ledger:
        for order in ("first", "second"):
            cpu = time.process_time()
            before = psutil.Process().memory_info().rss
            with ledger.begin({"benchmark": True}) as release:
                seconds = {"request": 0.0, "reserve": 0.0}
                for start in range(0, n_documents, BATCH):
                    size = min(BATCH, n_documents - start)
                    # Neighbouring documents have different subjects, which is the worst case.
                    subjects = [f"user-{(start + n) * 7919 % n_subjects:09d}" for n in range(size)]
                    began = time.perf_counter()
                    release.request(subjects, np.ones(size))
                    seconds["request"] += time.perf_counter() - began
                began = time.perf_counter()
                reserved = release.reserve(1.0, cap)
                seconds["reserve"] = time.perf_counter() - began
                release.spend()
                release.commit()
            cpu = time.process_time() - cpu
            rows.append(
                {
                    "documents": n_documents,
                    "subjects": n_subjects,
                    "release": order,
                    "withheld": reserved.n_withheld,
                    **{f"{name}_seconds": value for name, value in seconds.items()},
                    "cpu_seconds": cpu,
                    "documents_per_second": n_documents / sum(seconds.values()),
                    "memory_mb": (
                        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
                    )
                    / 1e6,
                    "ledger_mb": (folder / "ledger.sqlite").stat().st_size / 1e6,
                }
            )
    return rows


def reserve_in_bulk(n: int, times: int, folder: Path, address: str | None) -> list[dict[str, Any]]:
    """Reserve for releases of n subjects each, as the driver of a cluster does; the last release
    has the subjects of the first.

    CPU seconds and memory include the process of the database server, if it runs on this machine.
    """
    rows = list[dict[str, Any]]()
    with Ledger.open(folder, address=address) as ledger:
        processes = [psutil.Process()]
        if address is not None and psutil.pid_exists(
            pid := ledger.database.rows("select pg_backend_pid()")[0][0]
        ):
            processes.append(psutil.Process(pid))
        for order in (*range(times), 0):
            keys = (
                np.arange(start, min(start + BULK, n)) * 7919 % n for start in range(0, n, BULK)
            )
            batches = (
                pa.record_batch(
                    {
                        "subject": pc.binary_join_element_wise(
                            f"user-{order}", pa.array(part).cast(pa.string()), "-"
                        ),
                        "nano": pa.array(np.full(len(part), 10**9)),
                    }
                )
                for part in keys
            )
            before = sum(sum(process.cpu_times()[:2]) for process in processes)
            began = time.perf_counter()
            with ledger.begin({"benchmark": True}) as release:
                reserved = release.reserve_in_bulk(batches, 1.0, 1.5)
                seconds = time.perf_counter() - began
                cpu = sum(sum(process.cpu_times()[:2]) for process in processes) - before
                release.spend()
                release.commit()
            peak = sum(_peak(process.pid) for process in processes)
            made = {"documents": n, "subjects": min(len(rows) + 1, times) * n, "release": "bulk"}
            took = {"reserve_seconds": seconds, "cpu_seconds": cpu, "memory_mb": peak / 1e6}
            rows.append(made | {"withheld": reserved.n_withheld} | took)
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _peak(pid: int) -> int:
    """Return the largest resident memory of a process so far, in bytes, from Linux's /proc."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _alone(work: Any) -> Any:
    """Run ``work`` in a process of its own, so that the peak memory of the process is that of
    ``work``; return its result.
    """
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reads)
            with os.fdopen(writes, "w") as out:
                json.dump(work(), out)
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as back:
        content = back.read()
    os.waitpid(pid, 0)
    return json.loads(content)


def main() -> int:
    """Measure the ledger and print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--documents", type=int, default=1_000_000, metavar="N", help="default: 1,000,000"
    )
    parser.add_argument(
        "--folder", type=Path, help="where to work (default: the system's temporary folder)"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument(
        "--bulk",
        type=int,
        metavar="TIMES",
        help=(
            "number of bulk reservations with new subjects; one more has the subjects of the first"
        ),
    )
    parser.add_argument(
        "--ledger", metavar="ADDRESS", help="database for --bulk: postgresql://… (default: SQLite)"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as made:
        folder = Path(made)
        rows = []
        n = arguments.documents
        if arguments.bulk:
            rows = reserve_in_bulk(n, arguments.bulk, folder / "bulk", arguments.ledger)
        for n_subjects, cap in (
            () if arguments.bulk else ((n, None), (max(1, n // 10), 15.0), (1, n / 2))
        ):
            work = folder / str(n_subjects)
            rows += _alone(lambda s=n_subjects, c=cap, w=work: reserve(n, s, c, w))
        if arguments.json:
            print(json.dumps(rows, indent=2))
        else:
            names = {
                "documents": "documents",
                "subjects": "subjects",
                "release": "release",
                "withheld": "withheld",
                "request_seconds": "request s",
                "reserve_seconds": "reserve s",
                "cpu_seconds": "CPU s",
                "documents_per_second": "documents/s",
                "memory_mb": "memory MB",
                "ledger_mb": "ledger MB",
            }
            print_table(names, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
