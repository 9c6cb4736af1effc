"""Progress of a long stage: the events that it sends, and what Prefect shows of them."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from scratch_project import Project
from test_build import task_runs

from flows import stage_progress
from flows.stage_progress import ProgressPage, artifact_key
from lexveil.runtime.events import PIPE, EventPipe, ProgressEvent
from lexveil.runtime.stage import Progress

pytestmark = pytest.mark.slow


def progress(done: int, total: int, label: str = "count") -> ProgressEvent:
    return ProgressEvent(label, done, total, "tokens", f"{label}: {done} of {total:,} tokens")


@pytest.mark.parametrize(
    ("done", "total", "share"), [(1_200, 4_800, 25.0), (3, 3, 100.0), (7, 0, 100.0), (9, 8, 100.0)]
)
def test_percent(done: int, total: int, share: float) -> None:
    assert progress(done, total).percent == share


def test_stages_report_lines_and_events(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(EventPipe(tmp_path)) as pipe:
        monkeypatch.setenv(PIPE, str(pipe.path))
        meter = Progress("privatize madlib S3 1.0", 8_000, "documents", every=0.0)
        meter.advance(2_000, 50_000, "3 unknown")
        (first,) = pipe.read()
        meter.advance(6_000)
        meter.finish()
        events = [first, *pipe.read()]
    assert [event.percent for event in events] == [25.0, 100.0, 100.0]
    assert [event.text for event in events] == capsys.readouterr().out.splitlines()
    assert first.text.startswith("privatize madlib S3 1.0: 2,000 of 8,000 documents, 3 unknown, ")
    Progress("read", 0, "rows", every=0.0).advance(5)  # without a total there is no share, and nobody reads


def test_artifact_key() -> None:
    assert artifact_key("privatize@madlib-S3-1.0") == "progress-privatize-madlib-s3-1-0"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stage_progress, "create_progress_artifact", lambda *args: calls.append(("create", *args)) or 1)
    monkeypatch.setattr(stage_progress, "update_progress_artifact", lambda *args: calls.append(("update", *args)))
    return calls


def test_many_lines_are_few_updates_and_the_last_one_is_shown(sent: list[tuple[Any, ...]]) -> None:
    page = ProgressPage("count", every=600)
    for done in range(1, 1001):
        page.update(progress(done, 1_000))
    page.close()
    assert [call[0] for call in sent] == ["create", "update"]
    assert sent[-1][2:] == (100.0, "count: 1000 of 1,000 tokens")


def test_a_stage_that_only_says_that_it_is_done_has_no_artifact(sent: list[tuple[Any, ...]]) -> None:
    page = ProgressPage("count")
    page.update(progress(5, 5))
    page.close()
    assert sent == []


def test_a_dead_server_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_: object) -> None:
        raise stage_progress.httpx.ConnectError("refused")

    monkeypatch.setattr(stage_progress, "create_progress_artifact", dead)
    page = ProgressPage("count", every=600)
    page.update(progress(1, 5))
    page.update(progress(2, 5))
    page.close()


def test_a_long_stage_has_an_artifact_on_its_task_run(built: Project, run, prefect_server: str, monkeypatch) -> None:
    monkeypatch.setattr(stage_progress, "EVERY_SECONDS", 0.1)
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check progress 4")
    assert run().code == 0
    check = task_runs(prefect_server)["check"]
    with get_client(sync_client=True) as client:
        shown = []
        for _ in range(200):
            shown = [one for one in client.read_artifacts() if one.task_run_id == check.id]  # type: ignore[attr-defined]
            if shown and shown[0].data == 100.0:
                break
            time.sleep(0.05)
    (artifact,) = shown
    assert (artifact.key, artifact.type, artifact.data) == ("progress-check", "progress", 100.0)
    assert artifact.description == "check: 4 of 4 documents, 7 tokens/s"
