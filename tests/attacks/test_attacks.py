"""Attacks on what is published, each of which recovered something once: they must fail now.

Each is a module with a function ``attack`` that is given a project's folder, prints what it
recovered and returns whether it succeeds; it uses only the command line, Lexveil's API and what
anybody may read.
"""

import importlib
from pathlib import Path

import pytest

ATTACKS = {path.stem for path in Path(__file__).parent.glob("*.py")} - {"attacker", "test_attacks"}


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_the_attack_fails(name, listed):
    assert not importlib.import_module(f"tests.attacks.{name}").attack(listed)
