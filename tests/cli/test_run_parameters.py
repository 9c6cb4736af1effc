"""What `lexveil run` makes of params.yaml before the graph reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lexveil.cli.run import _write_points


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("grid:\n  epsilons: [5, 0.5, r0.2, 10] # mine\n", "grid:\n  epsilons: [5.0, 0.5, r0.2, 10.0] # mine\n"),
        ("grid:\n  epsilons:\n    - 1\n    - 2.5\n", "grid:\n  epsilons:\n    - 1.0\n    - 2.5\n"),
        ("grid:\n  epsilons: [5.0]\n  words: 7\n", None),
        ("other: [5]\n", None),
        ("grid: [5]\n", None),
        ("grid: {epsilons: 5}\n", None),
        ("grid: [\n", None),
    ],
)
def test_whole_epsilons_of_the_grid_get_a_decimal_point(
    tmp_path: Path, before: str, after: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(before, encoding="utf-8")
    _write_points(file)
    assert file.read_text(encoding="utf-8") == (after or before)
    assert ("decimal point" in capsys.readouterr().err) == (after is not None)
    assert [*tmp_path.iterdir()] == [file]
