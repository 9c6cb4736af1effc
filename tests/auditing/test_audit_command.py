"""`lexveil audit` on built artifacts: its table, its JSON, its exit codes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lexveil.accounting.budgets import Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.embeddings import load_embedding
from lexveil.auditing import audit as task
from lexveil.cli.main import main
from lexveil.errors import ParameterError, RequestError
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.runtime.hashes import code_hash, version
from tests.shared_trees import stand_beside

SMALL = "--mechanism madlib --epsilon 10 --words 12 --samples 1000 --confidence 0.999999".split()


def audit(*arguments: Any, **fields: Any) -> task.AuditResult:
    """Audit one toy only. The audit of the command has all toys, and so have the audits without a
    planted fault.
    """
    mechanism, epsilon = arguments
    given = {"workers": 1, "confidence": 1 - 1e-6, "samples": 400} | fields
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "SHAPES", ("plane",))
        return task.audit(task.AuditRequest(mechanism=mechanism, epsilon=epsilon, **given))


@pytest.fixture
def root(_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with the artifacts of the built one; the audit draws few keys."""
    monkeypatch.setattr("lexveil.auditing.keys.KEYS", 500)
    return stand_beside(_built, tmp_path, monkeypatch)


def test_the_json_of_an_audit(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The audit runs with the defaults: worker processes, and entropy from the operating system."""
    assert main(["audit", *SMALL, "--strategy", "S3", "--json", "--out", "audit.json"]) == 0
    shown = capsys.readouterr()
    made = json.loads(shown.out)  # progress is not in it
    assert made == json.loads((root / "audit.json").read_text(encoding="utf-8"))
    assert "draws" in shown.err
    assert (made["violation"], made["verdict"]) == (False, "no violation found")
    assert 1 < made["factor"] <= 8
    assert (made["mechanism"], made["epsilon"], made["strategy"], made["mode"]) == (
        "madlib",
        10.0,
        "S3",
        "release",
    )
    methods = [row["method"] for row in made["audits"]]
    assert {method: methods.count(method) for method in methods} == {
        "distribution": 12,
        "sampled": 5,
        "budget": 7,
        "noise": 2,
        "independence": 2,
        "keys": 1,
        "charges": 1,
        "written texts": 1,
    }
    assert all(row["verdict"] in ("no violation found", "holds") for row in made["audits"])
    places = {row["place"] for row in made["audits"]}
    assert {
        "release: S3, in memory",
        "release: S3, file, processes",
        "release: S3, consistent",
    } <= places
    assert {"embeddings/gst/vectors.npy", "collocations/bigrams.parquet"} <= made["space"].keys()
    assert (made["lexveil"], made["code"]) == (version(), code_hash())


def test_an_experiment_is_repeatable(root: Path) -> None:
    first, second = (
        audit("madlib", 10.0, mode="experiment", words=12, samples=200) for _ in range(2)
    )
    assert first.audits == second.audits and first.seed is not None and not first.violation


def test_a_violation_is_exit_code_1(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(task, "audit_releases", lambda *_: [])
    drawn = Madlib.noise
    monkeypatch.setattr(Madlib, "noise", lambda self, epsilon, rng: drawn(self, 2 * epsilon, rng))
    assert main(["audit", *SMALL]) == 1
    out = capsys.readouterr().out
    assert "VIOLATED" in out and "a violation of the claim was found" in out


@pytest.mark.parametrize(("mechanism", "contexts"), [("tem", 1), ("tem_context", 2)])
def test_a_known_law_on_the_built_vocabulary(root: Path, mechanism: str, contexts: int) -> None:
    """The audit covers a toy, the vocabulary and releases; the other mechanisms are audited with
    the planted faults.
    """
    result = audit(mechanism, 5.0, words=40, strategy="S3")
    assert result.verdict == "no violation found"
    exact = [row.place for row in result.audits if row.method == "exact"]
    assert len(exact) == 2 * contexts and sum("after token" in place for place in exact) == 2 * (
        contexts - 1
    )
    assert (contexts > 1) == any(name.startswith("bigrams/") for name in result.space)


def test_truncated_gumbel_on_the_built_vocabulary(root: Path) -> None:
    """Just above the smallest ε of the paper's calibration, the number of neighbours alone breaks
    the claim, without sampling.

    Below that ε, the mechanism refuses, and so does the audit.
    """
    space = load_embedding("word")
    vectors = Vocabulary.of(space.tokens, space.vectors, Policy("keep", "keep", "keep")).vectors
    with pytest.raises(ParameterError, match="the theorem has noise for an epsilon of more than"):
        audit("truncated_gumbel", 1.0, words=40)
    epsilon = 1.01 * TruncatedGumbel(vectors).smallest_epsilon
    result = audit("truncated_gumbel", epsilon, words=40)
    (bound,) = [
        row for row in result.audits if row.place.startswith(f"vocabulary: 40 of {len(vectors):,}")
    ]
    assert bound.method == "bounds" and bound.violation and bound.evidence.audited > 2 * epsilon
    assert result.violation


def test_lists_are_audited_in_their_own_metric(listed: Path) -> None:
    result = audit("diffractor_geometric", 0.5, words=40)
    exact = [row for row in result.audits if row.method == "exact"]
    assert len(exact) == 2 and result.verdict == "no violation found"
    assert max(row.evidence.audited for row in exact) > 0.2
    assert [row.method for row in result.audits].count("reach") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mechanism", "laplace"], "must be one of diffractor_geometric"),
        (["--words", "1"], "--words is 1; it must be at least 2"),
        (["--samples", "10"], "--samples is 10; it must be at least 200"),
        (["--confidence", "1"], "--confidence is 1; it must lie between 0 (excluded) and 1"),
        (["--out", "no/where.json"], "no such folder"),
        *((["--epsilon", value], "--epsilon is ") for value in ("0", "nan")),
    ],
)
def test_wrong_requests_are_exit_code_2(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    given = {"--mechanism": "madlib", "--epsilon": "1"} | dict([arguments])
    assert main(["audit", *(f"{name}={value}" for name, value in given.items())]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_no_artifacts_yet(root: Path) -> None:
    shutil.rmtree(root / "artifacts")
    with pytest.raises(RequestError, match="lexveil run"):
        task.audit(task.AuditRequest(mechanism="madlib", epsilon=1.0), model="own")
