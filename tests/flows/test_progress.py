"""Progress of a long stage: what is read from its lines, and what Prefect shows of it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from scratch_project import Project
from test_build import Notes, task_runs

from flows import build, stage_progress
from flows.stage_progress import ProgressPage, artifact_key, percent
from lexveil.runtime.project import build_lock
from lexveil.runtime.stage import Progress


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("privatize madlib S3 1.0: 1,200 of 4,800 documents, 20,000 tokens/s, about 9 s left", 25.0),
        ("audit, toy: line of 8 words: 80 of 160 draws at most", 50.0),
        ("coverage: 3 of 3 texts", 100.0),
        ("tokenize: 7 of 0 documents", 100.0),
        ("it took 3 of 5 days", None),
        ("epoch 3 of 5", None),
        ("check speaks", None),
    ],
)
def test_percent(line: str, share: float | None) -> None:
    assert percent(line) == share


def test_the_lines_of_stages_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    meter = Progress("privatize madlib S3 1.0", 8_000, "documents", every=0.0)
    meter.advance(2_000, 50_000, "3 unknown")
    assert percent(capsys.readouterr().out) == 25.0
    meter.advance(6_000)
    meter.finish()
    assert [percent(line) for line in capsys.readouterr().out.splitlines()] == [100.0, 100.0]


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
        page.hear(f"count: {done} of 1,000 tokens")
    page.close()
    assert [call[0] for call in sent] == ["create", "update"]
    assert sent[-1][2:] == (100.0, "count: 1000 of 1,000 tokens")


def test_a_stage_that_only_says_that_it_is_done_has_no_artifact(sent: list[tuple[Any, ...]]) -> None:
    page = ProgressPage("count")
    page.hear("count: 5 of 5 tokens")
    page.close()
    assert sent == []


def test_a_dead_server_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_: object) -> None:
        raise stage_progress.httpx.ConnectError("refused")

    monkeypatch.setattr(stage_progress, "create_progress_artifact", dead)
    page = ProgressPage("count", every=600)
    page.hear("count: 1 of 5 tokens")
    page.hear("count: 2 of 5 tokens")
    page.close()


def test_a_long_stage_has_an_artifact_on_its_task_run(built: Project, prefect_server: str, monkeypatch) -> None:
    monkeypatch.setattr(stage_progress, "EVERY_SECONDS", 0.1)
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check progress 4")
    with build_lock():
        assert build.run(prefect_server, Notes()) == 0
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
