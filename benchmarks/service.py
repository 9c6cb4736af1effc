"""Load test of a service over loopback: latency, throughput, and answers without a charge after
workers were killed.

    python -m benchmarks.service                        seconds of each batch size
    python -m benchmarks.service --minutes 10 --kill    a mixed load, workers killed at random

A service of real processes is started with a ledger of its own in a temporary folder, and threads
send requests to it. Afterwards the ledger must have a charge for every text that the service
returned. The check reads the tables of the ledger and does not ask the service.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.table import print_table
from lexveil.release.ledger.database import DATABASE
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify

SETTINGS = ("--mechanism", "tem", "--strategy", "S3", "--epsilon", "5")
SENTENCES = (
    "The patient came to the hospital on Monday and said that the headache had become worse "
    "since the new medicine.",
    "My order was delivered two weeks late and one of the three boxes had been opened before "
    "it reached the office.",
    "The committee will meet again next month to discuss the report about the railway and "
    "the cost of the new bridge.",
    "Please close my account and send the remaining balance to the address that I gave you "
    "on the phone yesterday.",
)
ANSWERED = re.compile(r" (\d+) INFO POST /v1/privatize 200 ")
PATIENCE = 1800.0  # seconds for the first worker to be ready


@dataclass(slots=True)
class Asked:
    """Requests that threads sent, and the answers.

    Attributes:
        answers: the ledger's transaction of each answer with texts, and the number of texts.
        seconds: time to each of these answers.
        failed: number of requests without texts, by HTTP status; 0 if there was no answer.
        charged: transactions that an answer without texts reported as charged.
    """

    answers: list[tuple[str, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: Counter[int] = field(default_factory=Counter)
    charged: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Running:
    """Service of real processes."""

    process: subprocess.Popen[bytes]
    port: int
    home: Path
    log: Path

    @property
    def ledger(self) -> Path:
        """Folder of the service's ledger."""
        return self.home / "ledger"

    def workers(self) -> list[psutil.Process]:
        """Return the workers that have answered a request. If starting workers were killed, the
        service might never answer.
        """
        answered = {
            int(number) for number in ANSWERED.findall(self.log.read_text(encoding="utf-8"))
        }
        return [
            child
            for child in psutil.Process(self.process.pid).children(recursive=True)
            if child.pid in answered
        ]

    def stop(self) -> int:
        """Ask the service to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextmanager
def running(home: Path, *options: str, log: Path) -> Iterator[Running]:
    """Run a service with a ledger in a user's folder; the service ends with the block."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "lexveil.faces.cli", "service", "--port", str(port), *options]
    with log.open("wb") as lines:
        process = subprocess.Popen(
            command,
            cwd=home.parent,
            env={**os.environ, "LEXVEIL_HOME": str(home)},
            stderr=lines,
            stdout=lines,
        )
    try:
        _wait_for(port, process, log)
        yield Running(process, port, home, log)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(120)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/v1/ready", timeout=10).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit(f"the service did not start:\n{log.read_text()}")


def ask(
    port: int,
    clients: int,
    sizes: Sequence[int],
    seconds: float,
    name: str,
    at_least: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Asked:
    """Send requests from several threads at a time; each text has a subject of its own.

    Args:
        port: port of the service.
        clients: number of threads.
        sizes: numbers of texts in a request, drawn at random.
        seconds: time during which requests are sent.
        name: name of this load, used in its subjects.
        at_least: minimum number of answers to wait for, even beyond ``seconds``.
        settings: settings of each request; None if the operator has fixed them.
    """
    asked = Asked()
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = random.Random(number)
        n = 0
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as http:
            while time.monotonic() < end or len(asked.answers) < at_least:
                n += 1
                size = rng.choice(sizes)
                body = {
                    "texts": [rng.choice(SENTENCES) for _ in range(size)],
                    "subjects": [f"{name}-{number}-{n}-{place}" for place in range(size)],
                    "settings": dict(settings or {}),
                }
                start = time.perf_counter()
                try:
                    answer = http.post("/v1/privatize", json=body)
                except httpx.TransportError:
                    with lock:
                        asked.failed[0] += 1
                    time.sleep(0.05)
                    continue
                took = time.perf_counter() - start
                with lock:
                    if answer.status_code == 200:
                        content = answer.json()
                        n_out = sum(text is not None for text in content["texts"])
                        asked.answers.append((content["record"]["release"]["id"], n_out))
                        asked.seconds.append(took)
                    else:
                        asked.failed[answer.status_code] += 1
                        if (charge := answer.json()["error"].get("charge")) is not None:
                            asked.charged.append(charge)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return asked


def unpaid(ledger: Path, asked: Asked) -> list[str]:
    """Return a line for each answer or reported charge for which the ledger has no charge."""
    with Ledger.open(ledger, None, make=False):
        pass  # opening recovers the transactions of killed workers
    con = sqlite3.connect(ledger / DATABASE)
    try:
        paid = {
            name: (state, n)
            for name, state, n in con.execute(
                "select id, state, count(subject) from releases "
                "left join spends on spends.release = releases.number group by number"
            )
        }
    finally:
        con.close()
    lines = [
        f"{name}: {n} texts were returned, but the ledger has {paid.get(name)}"
        for name, n in asked.answers
        if paid.get(name) != ("committed", n)
    ]
    lines += [
        f"{name}: was reported as charged"
        for name in asked.charged
        if paid.get(name, ("", 0))[0] != "failed"
    ]
    if len({name for name, _ in asked.answers}) != len(asked.answers):
        lines.append("one transaction belongs to two answers")
    return lines + [f"{problem.where}: {problem.what}" for problem in verify(ledger).problems]


@contextmanager
def killing(
    service: Running, every: float, seed: int, most: float = math.inf
) -> Iterator[list[int]]:
    """Kill a worker at random times while the block runs, ``most`` workers in total; yield the list
    of killed processes.
    """
    ended = threading.Event()
    killed = list[int]()
    rng = random.Random(seed)

    def kill() -> None:
        while not ended.wait(rng.expovariate(1 / every)):
            if len(killed) < most and (workers := service.workers()):
                victim = rng.choice(workers)
                victim.kill()
                killed.append(victim.pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def main() -> None:
    """Run the load test and print the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds for each batch size")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="minutes of the mixed load that follows"
    )
    parser.add_argument("--kill", action="store_true", help="kill workers during the mixed load")
    parser.add_argument("--every", type=float, default=5.0, help="mean seconds between two kills")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10, 100])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        log = Path(folder, "log")
        home.mkdir(mode=0o700)
        options = ("--model", "en", *SETTINGS, "--workers", str(chosen.workers))
        with running(home, *options, log=log) as service:
            for size in chosen.sizes:  # each worker once, because its first request takes longer
                ask(service.port, chosen.clients, [size], 2.0, f"warm-{size}")
            rows = []
            everything = Asked()

            def measured(what: str, asked: Asked, seconds: float) -> None:
                latency = np.array(asked.seconds or [np.nan])
                texts = sum(n for _, n in asked.answers)
                rows.append(
                    {
                        "what": what,
                        "requests": len(asked.answers),
                        "failed": sum(asked.failed.values()),
                        **{f"p{q}": float(np.percentile(latency, q)) * 1000 for q in (50, 95, 99)},
                        "requests_s": len(asked.answers) / seconds,
                        "texts_s": texts / seconds,
                    }
                )
                everything.answers.extend(asked.answers)
                everything.charged.extend(asked.charged)

            for size in chosen.sizes:
                measured(
                    f"{size} texts",
                    ask(service.port, chosen.clients, [size], chosen.seconds, f"s{size}"),
                    chosen.seconds,
                )
            killed: list[int] = []
            if chosen.minutes:
                seconds = 60 * chosen.minutes
                if chosen.kill:
                    with killing(service, chosen.every, 7) as killed:
                        asked = ask(service.port, chosen.clients, chosen.sizes, seconds, "mixed")
                else:
                    asked = ask(service.port, chosen.clients, chosen.sizes, seconds, "mixed")
                measured("mixed", asked, seconds)
                print("without texts, by status (0: no answer):", dict(asked.failed))
            code = service.stop()
            lines = unpaid(service.ledger, everything)
        columns = {
            "what": "",
            "requests": "answers",
            "failed": "without texts",
            "p50": "p50 ms",
            "p95": "p95 ms",
        }
        print_table(
            columns | {"p99": "p99 ms", "requests_s": "answers/s", "texts_s": "texts/s"}, rows
        )
        print(f"workers killed: {len(killed)}; exit code {code}; unpaid answers: {len(lines)}")
        for line in lines:
            print(line)
        sys.exit(1 if lines or code else 0)


if __name__ == "__main__":
    main()
