"""What a long loop says of the time that is left."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from lexveil.runtime import stage


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        # A minute of loading and 10 rows a second: after 160 rows 84 s are left, and not 451.
        ([(60.0, 10), (15.0, 150)], "privatize: 160 of 1,000 rows, about 84 s left"),
        # Units that were there already are no work.
        ([(0.0, 900), (50.0, 50)], "privatize: 950 of 1,000 rows, about 50 s left"),
        # Workers end their first parts together: the second one says nothing of the rate.
        ([(4.9, 100), (0.1, 100), (4.8, 100)], None),
        ([(4.9, 100), (0.1, 100), (4.9, 100)], "privatize: 300 of 1,000 rows, about 18 s left"),
    ],
)
def test_what_is_left(steps: list[tuple[float, int]], says: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(stage, "time", SimpleNamespace(monotonic=lambda: clock.now))
    out = io.StringIO()
    progress = stage.Progress("privatize", 1000, "rows", 5.0, out)
    for seconds, done in steps:
        clock.now += seconds
        progress.advance(done)
    assert [*out.getvalue().splitlines()[-1:]] == ([says] if says else [])
