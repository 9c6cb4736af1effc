"""The audit of written texts: what it knows of its toy project, how often it alarms by chance, and
that copies show as often as it says.

That it sees faults between a draw and the byte is in tests/mutations.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lexveil.auditing import written_texts
from lexveil.auditing.fit import POWER, chances
from lexveil.auditing.toy_project import TokenFate, make
from lexveil.auditing.toy_spaces import UNKNOWN, crowd
from lexveil.auditing.written_texts import (
    CROWD,
    CROWDED,
    EDGES,
    Scores,
    WrittenToken,
    _power,
    written_audit,
)
from lexveil.core.accounting.budgets import Policy
from lexveil.core.screen_parts import DEFAULT, chosen_parts
from lexveil.core.text.languages import language_of
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.screened_words import is_screened, screened_words
from lexveil.io.config import Configuration, parse_params

RUNS = 100


@pytest.mark.parametrize("strategy", ["S1", "S3"])
def test_the_audit_knows_what_is_screened(tmp_path, strategy):
    """The audit takes exactly the words of the public list for screened, far from all others; other
    words stay as they are.
    """
    policy = Policy("perturb", "keep", "sample")
    project = Project(Path(), parse_params({"seed": 1}), Configuration(), is_project=True)
    toy = make(tmp_path, "tem", strategy, policy, project, epsilon=2.0, n_crowd=CROWD)
    screened = is_screened(toy.tokens, screened_words(chosen_parts(DEFAULT)))
    assert screened.sum() in (4, 5)
    assert ((toy.instead != np.arange(len(toy.tokens))) == screened).all()
    assert not screened[toy.instead].any()
    assert not {*UNKNOWN, *crowd(CROWD)[0]} & {*language_of("en").function_words}
    assert len(toy.number) == len(toy.tokens) and not {*UNKNOWN} & {*toy.number}


def test_false_alarms_are_as_rare_as_stated(monkeypatch):
    """Uniform scores in overlapping groups raise false alarms as rarely as stated, with a slack of
    6 standard deviations.
    """
    rng = np.random.default_rng(5)
    n = 400
    error = 0.2
    fate = TokenFate("perturb", 0, 1.0, 0, 0)
    groups = [(CROWDED, "b", "c"), (CROWDED, "b"), ("c",)]
    tokens = [
        WrittenToken(0, -1, -1, fate, screens=True, groups=frozenset(groups[i % 3]))
        for i in range(n)
    ]
    law = SimpleNamespace(claim=SimpleNamespace(closed=True, in_context=True))
    monkeypatch.setattr(
        written_texts,
        "_scores",
        lambda *_: Scores(rng.random(n), rng.random(n), rng.random((n, 4)), np.full(n, 1e-3)),
    )
    alarms = sum(written_audit(tokens, law, 1.0, error, rng).violation for _ in range(RUNS))
    assert alarms <= RUNS * error + 6 * np.sqrt(RUNS * error * (1 - error))


def test_copies_are_seen_as_often_as_is_said():
    """At the share that ``_power`` names, at least 9 of 10 audits see the copies; of half as many
    copies fewer audits do. The test allows 6 standard deviations of slack."""
    rng = np.random.default_rng(6)
    n = 34_000
    each = 1e-6
    stays = np.full(n, 1 / CROWD)
    named = _power(stays, EDGES, each, reference=0)
    assert named is not None and named <= 1e-3

    def seen(share):
        found = 0
        for _ in range(RUNS):
            scores = np.where(rng.random(n) < share, rng.random(n) * stays, rng.random(n))
            counts = np.array([(scores <= edge).sum() for edge in EDGES])
            found += bool((chances(counts, np.full(len(EDGES), n), EDGES) < each).any())
        return found / RUNS

    assert seen(named) >= POWER - 6 * np.sqrt(POWER * (1 - POWER) / RUNS)
    assert seen(named / 2) < POWER / 2
