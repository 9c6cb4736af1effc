"""Whether keys of releases repeat: too few random bits, or a state that processes forked from one
have in common.
"""

from __future__ import annotations

import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np

from lexveil.auditing.findings import AuditFinding
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.worker import BatchWorker

KEYS = 2**13  # of each process; together they show up to about 27 random bits with probability 0.9
FORKS = 2
SECONDS = 300.0  # to wait for those of a forked process


def key_audit(place: str, worker: BatchWorker) -> AuditFinding:
    """Whether generators of batches repeat, of this process and of processes forked from it.

    Told by the first 128 bits of each, of which two are equal by chance once in 10^29 audits.
    """
    drawn = [_first_bits(worker)]  # what is imported for it is there before any fork
    drawn += [_forked(worker) for _ in range(FORKS)]
    keys = [key for keys in drawn for key in keys]
    if same := len(keys) - len(set(keys)):
        wrong = [
            f"{same:,} of {len(keys):,} keys of batches, of {len(drawn)} processes, are another's"
        ]
        return AuditFinding.fact(place, "keys", wrong, "")
    if not all(drawn):
        return AuditFinding(
            place, "keys", False, None, "inconclusive: a process that was forked gave no keys", True
        )
    return AuditFinding.fact(
        place, "keys", [], f"{len(keys):,} of batches, of {len(drawn)} processes: none twice"
    )


def _first_bits(worker: BatchWorker) -> list[bytes]:
    batch, drawn = Batch([["flint"]], [("1",)]), list[bytes]()
    for _ in range(KEYS):
        made = worker._generator(batch, "")
        generator = made if isinstance(made, np.random.Generator) else made(0)
        drawn.append(generator.bytes(16))
    return drawn


def _forked(worker: BatchWorker) -> list[bytes]:
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(worker, there))
    with warnings.catch_warnings():
        # of a fork beside threads: this one only draws, and ends
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
