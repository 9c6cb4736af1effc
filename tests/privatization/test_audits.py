"""A record names the audit it relies on, if it is of all that runs and recent; one that failed
stops releases."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from lexveil import RequestError, privatize
from lexveil.auditing.audit import AuditRequest, audit
from lexveil.base import paths
from lexveil.base.runtime.hashes import code_hash, sha256, version
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.record import ModelReference
from lexveil.io.artifacts.project import Project
from lexveil.io.request import Request
from lexveil.release.preconditions import find_valid_audit
from lexveil.release.settings import settings_of

SPACE = {"embeddings/gst/vectors.npy": "0" * 64}
MODEL = ModelReference(name="own", version=None, sha256="0" * 64)


def write(name, **changed):
    paths.AUDITS.mkdir(parents=True, exist_ok=True)
    file = paths.AUDITS / f"{name}.json"
    result = {
        "epsilon": 10.0,
        "epsilons": [2.5, 10.0],
        "mode": "release",
        "violation": False,
        "factor": 1.2,
        "verdict": "no violation found",
        "parameters": {"t": 0.75},
        "space": SPACE,
        "lexveil": version(),
        "model": MODEL.to_dict(),
        "policy": {"stopwords": "perturb", "punctuation": "keep", "oov": "sample"},
        "shares": None,
        "code": code_hash(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    } | changed
    file.write_text(json.dumps(result))
    return file


def relied_on(epsilon=10.0, mode="release"):
    options = Request(mechanism="vickrey", strategy="S3", epsilon=epsilon, mode=mode)
    project = Project.find()
    model = SimpleNamespace(project=project, configuration=project.configuration)
    prepared = {"t": 0.75}
    engine = SimpleNamespace(
        settings=settings_of(options, project),
        model=model,
        prepared=SimpleNamespace(parameters=prepared),
    )
    return find_valid_audit(engine, DocumentBudget(1.0, 1.0), MODEL, SPACE)


def test_the_nearest_epsilon_counts(built):
    assert relied_on()[0] is None
    write("vickrey-S3-1.0", epsilon=1.0, epsilons=[1.0, 12.0])
    file = write("vickrey-S3-10.0")
    write("vickrey-S1-10.0", epsilon=9.0)
    found, why = relied_on(9.0)
    assert found is not None and not why
    assert (found.epsilon, found.factor, found.mode) == (10.0, 1.2, "release")
    assert (found.result, found.sha256) == ("no violation found", sha256(file))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"parameters": {"t": 0.5}}, "other parameters"),
        (
            {"policy": {"stopwords": "perturb", "punctuation": "keep", "oov": "keep"}},
            "another policy",
        ),
        ({"shares": {"stopwords": 0.5}}, "other shares of the budget"),
        ({"model": MODEL.model_copy(update={"sha256": "1" * 64}).to_dict()}, "another model"),
        ({"space": {"embeddings/gst/vectors.npy": "1" * 64}}, "another embedding"),
        ({"code": "2" * 64}, "another version of the code"),
        ({"lexveil": "0.0.1"}, "another version of the code"),
        ({"mode": "experiment"}, "an experiment's noise"),
        ({"verdict": "inconclusive"}, "inconclusive"),
        ({"epsilons": [20.0, 40.0]}, "base epsilon from 20 to 40"),
        ({"time": (datetime.now(UTC) - timedelta(days=31)).isoformat()}, "older than 30 days"),
        ({"time": "yesterday"}, "of an older version"),
    ],
)
def test_an_audit_of_anything_else_is_none(built, changed, why):
    write("vickrey-S3-10.0", **changed)
    found, said = relied_on()
    assert found is None and "vickrey-S3-10.0.json" in said and why in said


def test_half_a_file_is_none(built):
    paths.AUDITS.mkdir(parents=True)
    (paths.AUDITS / "vickrey-S3-20.0.json").write_text('{"epsilon": 20.0, "vio')
    (paths.AUDITS / "vickrey-S3-30.0.json").write_text("[]")
    assert relied_on() == (None, "vickrey-S3-30.0.json: it is truncated, or of an older version")


def test_nothing_is_released_on_a_violation_however_old(built):
    write(
        "vickrey-S3-10.0",
        violation=True,
        verdict="violated",
        code="2" * 64,
        time="2020-01-01T00:00:00+00:00",
    )
    with pytest.raises(
        RequestError, match=r"vickrey-S3-10\.0\.json: the last audit .* found a violation"
    ):
        relied_on()
    assert relied_on(mode="experiment")[0] is None


def test_a_release_relies_on_an_audit_of_what_it_runs(built, monkeypatch, capsys):
    """A release with a document budget relies on an audit too: its base epsilon is the budget over
    the public average.
    """
    paths.AUDITS.mkdir(parents=True)
    monkeypatch.setattr("lexveil.auditing.audit.SHAPES", ())
    monkeypatch.setattr("lexveil.auditing.audit.audit_releases", lambda *_: [])
    made = audit(
        AuditRequest(mechanism="tem", epsilon=2.0, strategy="S1", samples=400, words=5),
        paths.AUDITS / "tem-S1-2.0.json",
    )
    evidence = json.loads((paths.AUDITS / "tem-S1-2.0.json").read_text())
    evidence |= {"verdict": "no violation found", "factor": 1.5}  # a part of an audit shows nothing
    (paths.AUDITS / "tem-S1-2.0.json").write_text(json.dumps(evidence))
    how = {"mechanism": "tem", "strategy": "S1", "average_words": 10.0}
    done = privatize(["the government said"], document_budget=20.0, **how)
    assert (
        done.record.audit is not None
        and done.record.audit.factor == 1.5
        and made.epsilons == (2.0,)
    )
    capsys.readouterr()
    other = privatize(["the government said"], document_budget=50.0, **how)
    assert other.record.audit is None
    assert (
        "the record cites no audit: tem-S1-2.0.json: it is an audit of a base epsilon from 2 to 2"
        in capsys.readouterr().err
    )
