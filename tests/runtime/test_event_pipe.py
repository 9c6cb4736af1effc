"""The pipe of events: what arrives whole, what is lost without harm, and what reaches it through DVC's shell."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.process import Command
from lexveil.errors import CheckFailed
from lexveil.runtime.events import PIPE, ErrorEvent, EventPipe, ProgressEvent, ResultEvent, send, send_error
from lexveil.runtime.stage import stage_main

EVENT = ProgressEvent("count", 1, 4, "tokens", "count: 1 of 4 tokens")
# Sends one event after another for as long as it lives.
ENDLESS = """
from lexveil.runtime.events import ResultEvent, send
for number in range(10**9):
    send(ResultEvent({"number": number, "filling": "x" * 3000}))
"""


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventPipe]:
    pipe = EventPipe(tmp_path)
    monkeypatch.setenv(PIPE, str(pipe.path))
    yield pipe
    if pipe.path.exists():
        pipe.close()


def test_events_arrive_as_they_were(pipe: EventPipe) -> None:
    events = [EVENT, ErrorEvent("CheckFailed", "ε\n is 3", 1), ResultEvent({"rows": 3, "why": None})]
    for event in events:
        send(event)
    assert list(pipe.read()) == events
    assert list(pipe.read()) == []


def test_lines_that_are_no_events_are_skipped(pipe: EventPipe) -> None:
    with pipe.path.open("w") as other:
        other.write('{"event": "progress"}\nnonsense\n[1]\n{"event": "new", "x": 1}\n{"event": ')
    send(EVENT)  # behind what was truncated
    send(EVENT)
    assert list(pipe.read()) == [EVENT]


def test_an_event_without_a_reader_costs_nothing(pipe: EventPipe, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe.close()
    send(EVENT)
    monkeypatch.delenv(PIPE)
    send(EVENT)


def test_nothing_to_read_is_not_ready(pipe: EventPipe) -> None:
    """Else the reader of a silent command would spin."""
    assert select.select([pipe], [], [], 0)[0] == []
    send(EVENT)
    assert select.select([pipe], [], [], 0)[0] == [pipe]
    assert list(pipe.read()) == [EVENT]
    assert select.select([pipe], [], [], 0)[0] == []


def test_a_killed_writer_leaves_whole_events_only(pipe: EventPipe) -> None:
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS])
        events = []
        while len(events) < 50:
            events += pipe.read()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        events += pipe.read()
        numbers = [event.value["number"] for event in events]
        assert numbers == list(range(len(numbers)))
        send(EVENT)
        assert list(pipe.read()) == [EVENT]  # nothing stands in front of it


def test_a_killed_reader_lets_the_writer_go_on(tmp_path: Path) -> None:
    code = "from lexveil.runtime.events import EventPipe; from pathlib import Path; import time\n"
    code += f"print(EventPipe(Path({str(tmp_path)!r})).path, flush=True); time.sleep(600)"
    reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    path = reader.stdout.readline().strip()
    reader.send_signal(signal.SIGKILL)
    reader.wait()
    reader.stdout.close()
    started = time.monotonic()
    code = "from lexveil.runtime.events import ResultEvent, send; send(ResultEvent({'text': 'x' * 200_000}))"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {PIPE: path}, check=True, timeout=60)
    assert time.monotonic() - started < 60


def test_a_result_longer_than_the_pipe_arrives_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from lexveil.runtime.events import ResultEvent, send\n"
    code += "send(ResultEvent({'text': 'x' * 200_000})); print('done')"
    command = Command([sys.executable, "-c", code], os.environ)
    messages = list(command.messages())
    assert command.wait() == 0
    assert sorted(messages, key=str) == [("out", "done"), ResultEvent({"text": "x" * 200_000})]
    assert not list((tmp_path / ".lexveil/tmp").iterdir())


def test_events_pass_a_shell_that_closes_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As DVC starts a stage: ``Popen(["/bin/sh", "-c", cmd], close_fds=True)``."""
    monkeypatch.chdir(tmp_path)
    stage = f"{sys.executable} -c 'from lexveil.runtime.events import send_error; send_error(ValueError(3), 2)'"
    code = f"import subprocess; subprocess.run(['/bin/sh', '-c', {stage!r}], close_fds=True)"
    command = Command([sys.executable, "-c", code], os.environ)
    assert list(command.messages()) == [ErrorEvent("ValueError", "an unknown place", 2)]
    command.wait()


def test_a_stage_sends_the_error_that_ends_it(pipe: EventPipe, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise CheckFailed("2 of 3 hold")

    def breaks() -> None:
        raise KeyError("missing")

    with pytest.raises(SystemExit) as ended:
        stage_main(fails)
    assert ended.value.code == 1
    with pytest.raises(KeyError):
        stage_main(breaks)
    send_error(CheckFailed("x" * 5000))
    first, second, long = pipe.read()
    assert first == ErrorEvent("CheckFailed", "2 of 3 hold", 1)
    assert isinstance(second, ErrorEvent) and second.type == "KeyError"
    assert re.fullmatch(r"test_event_pipe\.py, line \d+", second.message)  # what a KeyError says may be a word
    assert isinstance(long, ErrorEvent) and len(long.message) < select.PIPE_BUF
    assert capsys.readouterr().err == "CheckFailed: 2 of 3 hold\n"
