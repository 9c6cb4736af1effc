"""The verdict of an audit, of its keys too, and what it expects of the documents of its toy
project."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from lexveil.auditing import keys
from lexveil.auditing.findings import AuditFinding, AuditResult
from lexveil.auditing.keys import key_audit
from lexveil.auditing.toy_project import make
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.record import ModelReference
from lexveil.io.artifacts.project import Project
from lexveil.io.config import Configuration, parse_params

SAMPLE = Policy("perturb", "keep", "sample")
MODEL = ModelReference(name="own", version=None, sha256="0" * 64)


def result(*findings, factor=1.2):
    return AuditResult(
        mechanism="tem",
        guarantee="ε·d",
        no_guarantee=None,
        metric="d",
        parameters={},
        policy={},
        shares=None,
        epsilon=1.0,
        epsilons=(1.0,),
        strategy="S1",
        mode="release",
        seed=None,
        confidence=0.999,
        factor=factor,
        lexveil="1",
        code="c",
        model=MODEL,
        space={},
        time="2025-01-01T00:00:00+00:00",
        audits=findings,
    )


def test_the_verdict():
    right = AuditFinding.fact("release", "budget", [], "all as said")
    wrong = AuditFinding.fact("release", "budget", ["Σε exceeds B"], "all as said")
    unclear = AuditFinding(
        "release",
        "noise",
        violation=False,
        evidence=None,
        detail="words hardly move",
        inconclusive=True,
    )
    assert (right.verdict, wrong.verdict, unclear.verdict) == ("holds", "VIOLATED", "inconclusive")
    assert result(right).verdict == "no violation found"
    assert result(right, unclear).verdict == result(right, factor=None).verdict == "inconclusive"
    assert result(right, unclear, wrong).verdict == "violated"
    assert result(wrong).as_dict()["verdict"] == "violated"


@pytest.fixture
def toy(tmp_path):
    project = Project(Path(), parse_params({"seed": 1}), Configuration(), is_project=True)
    return make(tmp_path, "tem", "S3", SAMPLE, project, 1.0)


def fates(toy, *columns, consistent=False, **other):
    return [
        (fate.action, fate.epsilon)
        for fate in replace(toy, **other).fates(columns, 6.0, consistent)
    ]


def test_what_must_become_of_a_document(toy):
    """A budget of 6 and an average of 3 words: no token gets more than twice 6 / 3."""
    assert fates(toy, ("amber", "north_sea", "zorblax", ".")) == [
        ("perturb", 3.0),
        ("perturb", 3.0),
        ("sample", 0.0),
        ("keep", 0.0),
    ]
    assert fates(toy, ("amber",)) == [("perturb", 4.0)]
    # three words
    assert fates(toy, ("amber", "north_sea"), strategy="S2") == [("perturb", 2.0)] * 2
    assert fates(toy, ("amber",), ("birch", "cedar")) == [("perturb", 2.0)] * 3
    assert fates(toy, ("amber", "birch", "amber"), consistent=True) == [
        ("perturb", 3.0),
        ("perturb", 3.0),
        ("perturb", 0.0),
    ]


@dataclass
class Toy:
    """Stands for a worker: 64 random bits a key, or so many."""

    bits: int = 64
    dies: bool = False
    pid: int = field(default_factory=os.getpid)

    def _generator(self, *_):
        if self.dies and os.getpid() != self.pid:
            os._exit(1)
        return np.random.default_rng(int.from_bytes(os.urandom(8)) % 2**self.bits)


@pytest.mark.parametrize(
    ("worker", "verdict"),
    [(Toy(), "holds"), (Toy(bits=12), "VIOLATED"), (Toy(dies=True), "inconclusive")],
)
def test_keys_are_judged(monkeypatch, worker, verdict):
    monkeypatch.setattr(keys, "KEYS", 500)
    assert key_audit("here", worker).verdict == verdict
