"""Texts in the report: which are shown, that none is without being asked for, and that their marks
are true."""

import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.base.errors import CheckFailedError
from lexveil.base.levels import BaseEpsilon
from lexveil.io.config import MachineParams, ReportParams, load_params
from lexveil.lab.data.default import write_small_documents
from lexveil.lab.data.documents import document, write_set
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.page import render
from lexveil.lab.report.samples import load_samples
from lexveil.lab.report.section import PageSection
from lexveil.lab.report.sections import samples as section
from tests.conftest import ROOT, made_of, run_stage

pytestmark = pytest.mark.slow

SMALL = ("pang_lee", "reviews")  # the documents of the smaller default
RUNS = [("madlib", "S1", BaseEpsilon(1.0)), ("madlib", "S3", BaseEpsilon(20.0))]
CANARY = "zanzibarix"
OWN = [
    f"Fire services {CANARY} two",
    f"New South Wales {CANARY}",
    f"The government said {CANARY} <b>one</b>.",
]


def privatize():
    for run in (("none", "none", BaseEpsilon(0.0)), *RUNS):
        run_stage("privatize", *map(str, run))


@pytest.fixture(scope="module")
def _rewritten(_built, tmp_path_factory):
    return made_of(_built, tmp_path_factory, privatize)


@pytest.fixture
def rewritten(_rewritten, monkeypatch):
    """The embedded documents, rewritten by two runs; only for reading."""
    monkeypatch.chdir(_rewritten)
    return _rewritten


@pytest.fixture
def own(_rewritten, tmp_path, monkeypatch):
    """Rewritten project with documents of a user: three texts, two of them a pair, and one without
    a token.
    """
    root = tmp_path / "project"
    shutil.copytree(_rewritten, root)
    monkeypatch.chdir(root)
    shutil.rmtree("data/documents")
    Path("data/documents").mkdir()
    texts = {"a": (OWN[2], OWN[0]), "b": (OWN[1], None), "c": ("\u00a0", None)}  # c has no token
    rows = [
        document(doc_id, "all", text, text_b=text_b) for doc_id, (text, text_b) in texts.items()
    ]
    write_set(rows, Path("data/documents/reviews.parquet"))
    run_stage("plan_budgets")
    privatize()
    return root


def samples(number=None, seed=0):
    params = load_params()
    changed = {"report": ReportParams(samples=number), "seed": params.seed + seed}
    return load_samples(params.model_copy(update=changed), RUNS, MachineParams())


def page(number, monkeypatch):
    report = ReportData(load_params().model_copy(update={"report": ReportParams(samples=number)}))
    monkeypatch.setattr(ReportData, "keys", RUNS)
    monkeypatch.setattr(ReportData, "coverage", {"reviews": {}})
    return render(report, [PageSection("samples.html.j2", "Samples", "Samples", section.view)])


def test_embedded_documents_are_known_by_their_texts_and_one_other_character_makes_a_set_private(
    tmp_path, monkeypatch
):
    write_small_documents(tmp_path / "documents")
    params = load_params(ROOT / "params.yaml")
    clean = tmp_path / "artifacts/private/none/none/0.0/documents.parquet"
    monkeypatch.chdir(tmp_path)
    clean.parent.mkdir(parents=True)
    for changed, sets in ((False, set(SMALL)), (True, {"reviews"})):
        files = {
            name: pq.read_table(tmp_path / f"documents/{name}.parquet").to_pylist()
            for name in SMALL
        }
        files["pang_lee"][17]["text"] += " " * changed
        rows = [{"dataset": name, **row} for name, own in files.items() for row in own]
        pq.write_table(pa.Table.from_pylist(rows), clean)
        assert {sample.dataset for sample in load_samples(params, [], MachineParams())} == sets


@pytest.mark.usefixtures("rewritten")
def test_three_of_the_embedded_texts_in_turn_of_the_sets():
    shown = samples()
    assert [sample.dataset for sample in shown] == ["pang_lee", "reviews", "pang_lee"]
    assert all(sample.is_embedded and list(sample.runs) == RUNS for sample in shown)
    sources = [sample.source for sample in shown]
    assert [sample.source for sample in samples(2)] == sources[:2] and samples(0) == []
    assert [sample.source for sample in samples(seed=1)] != sources
    for key in RUNS:
        outputs = pq.read_table(f"artifacts/private/{'/'.join(map(str, key))}/documents.parquet")
        assert {sample.runs[key].output for sample in shown} <= set(outputs["text"].to_pylist())
        assert [sample.runs[key].source for sample in shown] == sources


@pytest.mark.usefixtures("own")
def test_a_users_texts_are_shown_only_by_a_number(monkeypatch):
    """Though the data set has the name of an embedded one."""
    silent = page(None, monkeypatch)
    assert samples() == [] and CANARY not in silent
    assert "No text is shown" in silent and "No text of the documents is on this page." in silent
    asked = page(5, monkeypatch)
    assert (
        "This page holds 3 of your own texts, as they are" in asked
        and "3 texts are on this page" in asked
    )
    assert f"{CANARY} &lt;b&gt;one" in asked and "<b>one" not in asked
    assert sorted(sample.source for sample in samples(100)) == OWN


@pytest.mark.usefixtures("own")
def test_the_token_log_of_another_text_is_found_out():
    file = Path("artifacts/private/madlib/S3/20.0/documents.parquet")
    rows = pq.read_table(file)
    pq.write_table(
        rows.drop_columns("text").append_column("text", pa.array(["Rain."] * rows.num_rows)), file
    )
    with pytest.raises(
        CheckFailedError, match=r"dvc repro --force privatize@madlib-S3-20.0"
    ) as found:
        samples(5)
    assert CANARY not in str(found.value)


@pytest.mark.usefixtures("rewritten")
def test_the_marks_are_those_of_the_token_log(monkeypatch):
    cells = iter(
        re.findall(r"<td>(.*?)<small>(.*?)</small></td>", page(None, monkeypatch), flags=re.DOTALL)
    )
    for changes in (sample.runs[key] for sample in samples() for key in RUNS):
        cell, _ = next(cells)
        assert unescape(re.sub(r"<[^>]+>", "", cell)).strip() == changes.output
        marks = Counter(re.findall(r'<(?:mark|span) class="(\w+)"', cell))
        assert marks == {fate: n for fate, n in changes.counts().items() if fate != "unchanged"}
    assert next(cells, None) is None
    monkeypatch.setattr(section, "TOKENS_SHOWN", 4)  # of a long text the start is shown
    shown = page(None, monkeypatch)
    first = samples()[0]
    assert (
        first.source not in shown
        and f"… and {len(first.runs[RUNS[0]].fates) - 4} more tokens" in shown
    )
