"""Keys of an audit: a process that gives none makes no verdict."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
import pytest

from lexveil.auditing import keys
from lexveil.auditing.keys import key_audit


@dataclass
class Toy:
    """Stands for a worker: 64 random bits a key, or so many."""

    bits: int = 64
    dies: bool = False
    pid: int = field(default_factory=os.getpid)

    def _generator(self, *_: object) -> np.random.Generator:
        if self.dies and os.getpid() != self.pid:
            os._exit(1)
        return np.random.default_rng(int.from_bytes(os.urandom(8)) % 2**self.bits)


@pytest.mark.parametrize(
    ("toy", "verdict"), [(Toy(), "holds"), (Toy(bits=12), "VIOLATED"), (Toy(dies=True), "inconclusive")]
)
def test_keys_are_judged(monkeypatch: pytest.MonkeyPatch, toy: Toy, verdict: str) -> None:
    monkeypatch.setattr(keys, "KEYS", 500)
    assert key_audit("here", toy).verdict == verdict
