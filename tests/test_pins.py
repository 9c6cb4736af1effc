"""What CI says when a pinned package is no longer served."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("pins", Path(__file__).parents[1] / ".ci" / "pins.py")
pins = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pins)

PINS = {"six": "1.9.99", "sixer": "2.0", "werkzeug": "77.0", "moto": "5.1"}


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (
            "error: No solution found when resolving dependencies\n  cause: Because there is no version of six==1.9.99 "
            "and your project depends on six==1.9.99, we can conclude that …",
            ["six"],
        ),
        (
            "Because there is no\n      version of werkzeug==77.0 and no version of moto[s3]==5.1, …",
            ["werkzeug", "moto"],
        ),
        ("Because sixer was not found in the package registry and your project depends on sixer, …", ["sixer"]),
        ("Because there is no version of six==1.9.99.1 and …", []),
        ("error: Failed to fetch: the network is unreachable", []),
    ],
)
def test_a_pin_that_is_not_served_is_named_with_what_to_do(error: str, names: list[str]) -> None:
    lines = pins.explained(error, PINS)
    assert [line.split()[0] for line in lines[:-1]] == names
    assert not names or ".ci/pins.py --write" in lines[-1]


def test_pins_are_read_from_the_project() -> None:
    found = pins.pins_of((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "cyclopts" in found and all(found.values())
