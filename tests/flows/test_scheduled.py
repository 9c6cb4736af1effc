"""The flows as a server starts them: time limits, audits, releases. In this process, without a
schedule."""

import json
import sys
import time
from types import SimpleNamespace

import pytest
from prefect.client.orchestration import get_client

from flows import audit as audit_flow
from flows import build as build_flow
from flows import release as release_flow
from flows import supervision
from lexveil.base.levels import BaseEpsilon, RecoveryTarget
from lexveil.io.config import Configuration, load_params, parse_configuration, parse_params
from lexveil.release.inbox.report import ReleaseReport

pytestmark = pytest.mark.slow

REPORT = ReleaseReport(
    rows=9, new=2, changed=1, duplicate=5, withdrawn=1, released=2, withheld=1
).as_dict()


@pytest.fixture(autouse=True)
def environment(project, prefect_server):
    """A project with data."""
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()


def table(key):
    with get_client(sync_client=True) as client:
        made = [artifact for artifact in client.read_artifacts() if artifact.key == key]
    return json.loads(str(max(made, key=lambda artifact: artifact.created).data))


def test_a_build_that_takes_too_long_is_stopped_and_the_next_continues(built):
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check wait 600")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_flow, "deadline", lambda: build_flow.time.monotonic() + 1)
        state = build_flow.build(return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "TimedOut")
    assert "operation.timeout_minutes" in state.message
    built.behave("check fail 1")
    built.ran()
    state = build_flow.build(return_state=True)
    assert state.message == "check: CheckFailedError: check does not hold; the limit is 3"
    assert built.ran() == ["check"]  # it is not tried again
    built.behave()
    assert build_flow.build(return_state=True).name == "Completed" and built.ran() == ["check"]


# Stands for `lexveil audit`: writes a result as lexveil.auditing.audit does, or ends with an error.
STAND_IN = """
import json, sys, time
mechanism, strategy, epsilon, out = sys.argv[1:]
if mechanism == "vickrey":
    sys.exit("lexveil audit: --mechanism vickrey: there is no such space")
if mechanism == "mahalanobis":
    time.sleep(600)
violation = mechanism == "tem"
print("audit, toy: 5 of 10 draws at most", file=sys.stderr)
row = {"place": "toy", "method": "exact", "claimed": 1.0, "audited": 2.0 if violation else 0.5,
       "violation": violation, "verdict": "VIOLATED" if violation else "holds"}
result = {"mechanism": mechanism, "strategy": strategy, "epsilon": float(epsilon)}
result |= {"no_guarantee": None, "audits": [row], "violation": violation}
json.dump(result, open(out, "w"))
sys.exit(int(violation))
"""


@pytest.fixture
def audits(monkeypatch):
    def command(combination, _words, _samples, out):
        return [sys.executable, "-c", STAND_IN, *map(str, combination), str(out)]

    monkeypatch.setattr(audit_flow, "audit_command", command)


def test_grid_and_levels_are_audited_and_the_report_is_an_artifact(audits, monkeypatch):
    """Levels at the epsilons that were found for them; without those that are out of reach."""
    params = load_params()
    grid = params.grid.model_copy(
        update={"epsilons": [BaseEpsilon(1.0), RecoveryTarget(0.5)], "strategies": ["S1", "S2"]}
    )
    params = params.model_copy(update={"grid": grid})
    monkeypatch.setattr(audit_flow, "load_params", lambda: params)
    monkeypatch.setattr(audit_flow, "epsilon_of", lambda m, s, noise: noise.epsilon or 9.0)
    out_of_reach = ("madlib", "S2", RecoveryTarget(0.5))
    monkeypatch.setattr(audit_flow, "skipped_run", lambda *run: run == out_of_reach or None)
    state = audit_flow.audit(return_state=True)
    assert (state.name, state.message) == ("Completed", "3 audits, no violation found")
    judged = {"place": "toy", "method": "exact", "claimed": 1.0, "audited": 0.5, "verdict": "holds"}
    assert table("lexveil-audit") == [
        {"mechanism": "madlib", "strategy": strategy, "epsilon": epsilon} | judged
        for strategy, epsilon in (("S1", 1.0), ("S1", 9.0), ("S2", 1.0))
    ]
    assert audit_flow.requested_audits(params, Configuration(), ["tem"], None, None) == [
        ("tem", "S1", 1.0),
        ("tem", "S2", 1.0),
    ]
    assert audit_flow.requested_audits(params, Configuration(), None, ["S2"], [3.0]) == [
        ("madlib", "S2", 3.0)
    ]


@pytest.mark.parametrize(
    ("mechanisms", "name", "message"),
    [
        (["tem", "madlib"], "Failed", "audit@tem-S1-1.0: the claimed ε of 1.0 is violated"),
        (
            ["vickrey", "madlib"],
            "Failed",
            "audit@vickrey-S1-1.0: --mechanism vickrey: there is no such space",
        ),
        (["mahalanobis"], "TimedOut", "operation.timeout_minutes"),
    ],
)
def test_a_violated_claim_and_an_audit_that_cannot_be_made_fail_the_run(
    audits, monkeypatch, mechanisms, name, message
):
    if name == "TimedOut":  # after a second; params.yaml allows nothing below a minute
        monkeypatch.setattr(supervision, "deadline", lambda: time.monotonic() + 1)
    state = audit_flow.audit(mechanisms, ["S1"], return_state=True)
    assert (state.type.value, state.name) == ("FAILED", name)
    assert message in state.message
    # A violation does not keep the others from being audited; what cannot be made does.
    assert [row["mechanism"] for row in table("lexveil-audit")] == (
        mechanisms if mechanisms[0] == "tem" else []
    )


@pytest.mark.parametrize(
    ("settings", "audited"),
    [
        ({}, []),
        ({"inbox": {"source": "inbox", "epsilon": 2.5}}, [("tem", "S3", 2.5)]),
        ({"inbox": {"sql": "select 1", "recovery": 0.2, "band": "content"}}, [("tem", "S3", 4.5)]),
        (
            {
                "inbox": {"sql": "select 1", "document_budget": 60.0},
                "release": {"average_words": 20.0},
            },
            [("tem", "S3", 3.0)],
        ),
    ],
)
def test_what_the_nightly_release_runs_is_audited(settings, audited, monkeypatch):
    """The audit takes the base epsilon of the release, even if its recovery or its document budget
    is given.
    """
    monkeypatch.setattr(audit_flow.Model, "load", lambda *_: None)
    resolved = {(0.2, "content"): SimpleNamespace(base_epsilon=4.5)}
    monkeypatch.setattr(
        audit_flow, "resolve_settings", lambda asked, _: resolved[asked.recovery, asked.band]
    )
    parsed = parse_params({"seed": 1, "grid": {"epsilons": [1.0]}})
    configuration = parse_configuration(settings)
    assert audit_flow.released(configuration) == audited
    requested = audit_flow.requested_audits(parsed, configuration, None, None, None)
    assert requested[: len(audited)] == audited and len(set(requested)) == len(requested)
    assert audit_flow.requested_audits(parsed, configuration, None, None, [1.5])[0][2] == 1.5


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        (
            f"print('releasing'); import json; print(json.dumps({REPORT!r}))",
            "Completed",
            "2 released, 1 changed, 5 duplicate, 1 withdrawn, 1 withheld",
        ),
        (
            "import os; print('releasing'); os.kill(os.getpid(), 9)",
            "Failed",
            "release: killed (signal 9)",
        ),
        # of this project, by `lexveil release`
        (None, "Failed", "release: artifacts/embeddings/gst does not exist yet"),
    ],
)
def test_how_a_release_ended_is_said(project, monkeypatch, code, name, message):
    if code:
        monkeypatch.setattr(release_flow, "release_command", lambda: [sys.executable, "-c", code])
    assert release_flow.release(return_state=True).name == "Off"  # there is no source
    project.configure(inbox={"source": "inbox", "document_budget": 40.0})
    state = release_flow.release(return_state=True)
    assert state.name == name and message in state.message
    if name == "Completed":
        shown = {row["what"]: row["value"] for row in table("lexveil-release")}
        assert shown == {what: "" if value is None else value for what, value in REPORT.items()}
