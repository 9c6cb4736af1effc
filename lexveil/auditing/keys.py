"""Audit of random keys: releases with equal keys would show too few random bits, or random state
that forked processes share.
"""

from __future__ import annotations

import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np

from lexveil.auditing.findings import AuditFinding
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.worker import BatchWorker

# keys per process; together they detect up to about 27 random bits with probability 0.9
KEYS = 2**13
FORKS = 2
SECONDS = 300.0  # timeout for the keys of a forked process


def key_audit(place: str, worker: BatchWorker) -> AuditFinding:
    """Check whether two batches get equal random generators, in this process and in processes
    forked from it.

    Generators are compared by their first 128 bits; two of them are equal by chance only once in
    10^29 audits.
    """
    drawn = [_first_bits(worker)]  # this process comes first, so that imports precede forks
    drawn += [_forked(worker) for _ in range(FORKS)]
    keys = [key for keys in drawn for key in keys]
    if same := len(keys) - len(set(keys)):
        wrong = [
            f"{same:,} of {len(keys):,} keys of batches in {len(drawn)} processes equal another key"
        ]
        return AuditFinding.fact(place, "keys", wrong, "")
    if not all(drawn):
        return AuditFinding(
            place,
            "keys",
            violation=False,
            evidence=None,
            detail="inconclusive: a forked process returned no keys",
            inconclusive=True,
        )
    return AuditFinding.fact(
        place,
        "keys",
        [],
        f"{len(keys):,} keys of batches in {len(drawn)} processes: no key occurs twice",
    )


def _first_bits(worker: BatchWorker) -> list[bytes]:
    batch = Batch([["flint"]], [("1",)])
    drawn = list[bytes]()
    for _ in range(KEYS):
        noise = worker._generator(batch, "")
        generator = noise if isinstance(noise, np.random.Generator) else noise(0)
        drawn.append(generator.bytes(16))
    return drawn


def _forked(worker: BatchWorker) -> list[bytes]:
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(worker, there))
    with warnings.catch_warnings():
        # the warning is about forks of processes with threads; this fork only draws and ends
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    there.close()
    try:
        sent = here.recv_bytes() if here.poll(SECONDS) else b""
    except EOFError:
        sent = b""
    process.kill()
    process.join()
    return [sent[start : start + 16] for start in range(0, len(sent), 16)]


def _send(worker: BatchWorker, there: Connection) -> None:
    there.send_bytes(b"".join(_first_bits(worker)))
