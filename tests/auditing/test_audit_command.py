"""`lexveil audit` on built artifacts: its table, its JSON, its exit codes."""

import io
import json
import shutil
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from lexveil.auditing import audit as task
from lexveil.base.errors import ParameterError, RequestError
from lexveil.base.runtime.hashes import code_hash, version
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.faces.cli.main import main
from lexveil.io.artifacts.embeddings import load_embedding
from tests.shared_trees import stand_beside

SMALL = "--mechanism madlib --epsilon 10 --words 12 --samples 1000 --confidence 0.999999".split()


def audit(*arguments, **fields):
    """Audit one toy only. The audit of the command has all toys, and so have the audits without a
    planted fault.
    """
    mechanism, epsilon = arguments
    given = {"workers": 1, "confidence": 1 - 1e-6, "samples": 400} | fields
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "SHAPES", ("plane",))
        return task.audit(task.AuditRequest(mechanism=mechanism, epsilon=epsilon, **given))


@pytest.fixture
def root(_built, tmp_path, monkeypatch):
    """A project folder with the artifacts of the built one; the audit draws few keys."""
    monkeypatch.setattr("lexveil.auditing.keys.KEYS", 500)
    return stand_beside(_built, tmp_path, monkeypatch)


@dataclass(frozen=True)
class Audited:
    """One `lexveil audit --json --out`, with the defaults: worker processes, and entropy from the
    operating system."""

    code: int
    printed: str
    progress: str
    written: str

    @property
    def made(self):
        return dict(json.loads(self.printed))

    @property
    def rows(self):
        return list(self.made["audits"])


@pytest.fixture(scope="module")
def audited(_built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    printed = io.StringIO()
    progress = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(progress):
        patch.setattr("lexveil.auditing.keys.KEYS", 500)
        stand_beside(_built, folder, patch)
        code = main(["audit", *SMALL, "--strategy", "S3", "--json", "--out", "audit.json"])
    written = (folder / "audit.json").read_text(encoding="utf-8")
    return Audited(code, printed.getvalue(), progress.getvalue(), written)


def test_an_audit_without_a_violation_is_exit_code_0(audited):
    assert audited.code == 0
    assert all(row["verdict"] in ("no violation found", "holds") for row in audited.rows)


def test_the_json_of_an_audit_is_printed_and_written_and_progress_is_beside_it(
    audited,
):
    assert audited.made == json.loads(audited.written)
    assert "draws" in audited.progress


def test_the_json_of_an_audit_says_what_was_audited_and_by_which_code(audited):
    expected = {
        "violation": False,
        "verdict": "no violation found",
        "mechanism": "madlib",
        "epsilon": 10.0,
        "strategy": "S3",
        "mode": "release",
        "lexveil": version(),
        "code": code_hash(),
    }
    assert {name: audited.made[name] for name in expected} == expected
    assert 1 < audited.made["factor"] <= 8
    files = {"embeddings/gst/vectors.npy", "collocations/bigrams.parquet"}
    assert files <= audited.made["space"].keys()


def test_an_audit_has_every_method_and_way_of_release(audited):
    assert Counter(row["method"] for row in audited.rows) == {
        "distribution": 12,
        "sampled": 5,
        "budget": 7,
        "noise": 2,
        "independence": 2,
        "keys": 1,
        "charges": 1,
        "written texts": 1,
    }
    places = {row["place"] for row in audited.rows}
    ways = ("in memory", "file, processes", "consistent")
    assert {f"release: S3, {way}" for way in ways} <= places


def test_an_experiment_is_repeatable(root):
    first, second = (
        audit("madlib", 10.0, mode="experiment", words=12, samples=200) for _ in range(2)
    )
    assert first.audits == second.audits and first.seed is not None and not first.violation


def test_a_violation_is_exit_code_1(root, monkeypatch, capsys):
    monkeypatch.setattr(task, "audit_releases", lambda *_: [])
    drawn = Madlib.noise
    monkeypatch.setattr(Madlib, "noise", lambda self, epsilon, rng: drawn(self, 2 * epsilon, rng))
    assert main(["audit", *SMALL]) == 1
    out = capsys.readouterr().out
    assert "VIOLATED" in out and "a violation of the claim was found" in out


@pytest.mark.parametrize(("mechanism", "contexts"), [("tem", 1), ("tem_context", 2)])
def test_a_known_law_on_the_built_vocabulary(root, mechanism, contexts):
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


def test_truncated_gumbel_on_the_built_vocabulary(root):
    """Just above the smallest ε of the paper's calibration, the number of neighbours alone breaks
    the claim, without sampling.

    Below that ε, the mechanism refuses, and so does the audit.
    """
    space = load_embedding("word")
    vectors = Vocabulary.of(space.tokens, space.vectors, Policy("keep", "keep", "keep")).vectors
    with pytest.raises(ParameterError, match="theorem covers an epsilon of more than"):
        audit("truncated_gumbel", 1.0, words=40)
    epsilon = 1.01 * TruncatedGumbel(vectors).smallest_epsilon
    result = audit("truncated_gumbel", epsilon, words=40)
    (bound,) = [
        row for row in result.audits if row.place.startswith(f"vocabulary: 40 of {len(vectors):,}")
    ]
    assert bound.method == "bounds" and bound.violation and bound.evidence.audited > 2 * epsilon
    assert result.violation


def test_lists_are_audited_in_their_own_metric(listed):
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
def test_wrong_requests_are_exit_code_2(root, capsys, arguments, message):
    given = {"--mechanism": "madlib", "--epsilon": "1"} | dict([arguments])
    assert main(["audit", *(f"{name}={value}" for name, value in given.items())]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_no_artifacts_yet(root):
    shutil.rmtree(root / "artifacts")
    with pytest.raises(RequestError, match="lexveil run"):
        task.audit(task.AuditRequest(mechanism="madlib", epsilon=1.0), model="own")
