"""What a long loop says of the time that is left."""

from __future__ import annotations

import io

import pytest

from lexveil.errors import RequestError
from lexveil.runtime import stage
from lexveil.runtime.stage import Progress


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stage, "time", clock)
    return clock


def lines(steps: list[tuple[float, int]], clock: Clock, every: float = 5.0) -> list[str]:
    out = io.StringIO()
    progress = Progress("privatize", 1000, "rows", every, out)
    for seconds, done in steps:
        clock.now += seconds
        progress.advance(done)
    return out.getvalue().splitlines()


def test_what_is_left_does_not_count_what_was_loaded(clock: Clock) -> None:
    """A minute of loading and 10 rows a second: after 160 rows 84 s are left, and not 451."""
    assert lines([(60.0, 10), (15.0, 150)], clock) == [
        "privatize: 10 of 1,000 rows",
        "privatize: 160 of 1,000 rows, about 84 s left",
    ]


def test_units_that_were_there_already_are_no_work(clock: Clock) -> None:
    assert lines([(0.0, 900), (50.0, 50)], clock) == ["privatize: 950 of 1,000 rows, about 50 s left"]


def test_an_estimate_has_seen_some_seconds_of_work(clock: Clock) -> None:
    """Workers end their first parts together: the second one says nothing of the rate."""
    assert lines([(4.9, 100), (0.1, 100), (4.8, 100)], clock) == []
    assert lines([(4.9, 100), (0.1, 100), (4.9, 100)], clock) == ["privatize: 300 of 1,000 rows, about 18 s left"]


def test_at_the_end_nothing_is_left(clock: Clock) -> None:
    assert lines([(10.0, 500), (10.0, 500)], clock)[-1] == "privatize: 1,000 of 1,000 rows"


def test_the_last_line_of_a_stage_is_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise RequestError("no such\nkey")

    with pytest.raises(SystemExit) as ended:
        stage.stage_main(fails)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "RequestError: no such key\n"
