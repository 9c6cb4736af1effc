"""The output suite through its SQL: a run and a baseline made by hand, and one defect at a time."""

from __future__ import annotations

import json
from math import inf, nan

import pandas as pd
import pyarrow as pa
import pytest

from lexveil.config import load_params
from lexveil.errors import MissingArtifact
from tasks import check_outputs
from tests.checks.conftest import SECRET

pytestmark = pytest.mark.slow

STRING, INT = pa.string(), pa.int64()
INPUTS = pa.schema([(name, STRING) for name in ("dataset", "doc_id", "split", "text", "text_b", "label", "attribute")])
DOCUMENTS = pa.schema(
    [
        *INPUTS,
        ("n_tokens_in", INT),
        ("n_tokens_out", INT),
        ("n_words_out", INT),
        ("epsilon_spent", pa.float64()),
        ("n_unprotected", INT),
    ]
)
LEDGER = pa.schema(
    [
        ("dataset", STRING),
        ("doc_id", STRING),
        ("field", STRING),
        ("position", pa.int32()),
        ("class", STRING),
        ("epsilon", pa.float64()),
        ("action", STRING),
        ("n_words", pa.int8()),
        ("word_id", pa.int32()),
    ]
)
PLAN = pa.schema(
    [
        *((name, STRING) for name in ("dataset", "doc_id", "field")),
        *((name, INT) for name in ("n_words", "n_tokens", "n_perturbed")),
        *((name, pa.float64()) for name in ("budget", "epsilon_per_token")),
    ]
)
V = 100


def inputs() -> pd.DataFrame:
    rows = [
        ("pairs", "a", "train", f"{SECRET} one.", f"two {SECRET}", "1", "x"),
        ("pairs", "b", "test", "...", None, None, None),
        ("singles", "a", "all", f"the {SECRET}", None, "0", None),
        ("singles", "b", "all", "", None, "0", None),
    ]
    return pd.DataFrame(rows, columns=INPUTS.names, dtype=object)


def documents() -> pd.DataFrame:
    """Two texts of one document, one of kept marks, one with a sampled token, one without tokens."""
    rewritten = inputs()
    rewritten["text"] = pd.Series(["other words here.", "...", "a name", ""], dtype=object)
    rewritten["text_b"] = pd.Series(["else", None, None, None], dtype=object)
    numbers = [(5, 4, 5, 9.0, 1), (1, 1, 1, 0.0, 1), (2, 2, 2, 0.5, 0), (0, 0, 0, 0.0, 0)]
    return rewritten.join(pd.DataFrame(numbers, columns=DOCUMENTS.names[7:], dtype=object))


def ledger() -> pd.DataFrame:
    rows = [
        ("pairs", "a", "text", 0, "word", 2.5, "perturbed", 2, 99),
        ("pairs", "a", "text", 1, "word", 2.5, "perturbed", 1, 0),
        ("pairs", "a", "text", 2, "punctuation", 0.0, "kept", 1, -1),
        ("pairs", "a", "text_b", 0, "oov", 0.0, "dropped", 1, -1),
        ("pairs", "a", "text_b", 1, "word", 4.0, "perturbed", 1, 7),
        ("pairs", "b", "text", 0, "punctuation", 0.0, "kept", 1, -1),
        ("singles", "a", "text", 0, "stopword", 0.5, "perturbed", 1, 3),
        ("singles", "a", "text", 1, "oov", 0.0, "sampled", 1, 4),
    ]
    return pd.DataFrame(rows, columns=LEDGER.names, dtype=object)


def plan() -> pd.DataFrame:
    rows = [
        ("pairs", "a", "text", 3, 3, 2, 5.0, 2.5),
        ("pairs", "a", "text_b", 2, 2, 1, 5.0, 4.0),
        ("pairs", "b", "text", 1, 1, 0, 5.0, 0.0),
        ("singles", "a", "text", 2, 2, 1, 0.5, 0.5),
        ("singles", "b", "text", 0, 0, 0, 0.5, 0.0),
    ]
    return pd.DataFrame(rows, columns=PLAN.names, dtype=object)


def clean_documents() -> pd.DataFrame:
    numbers = [(5, 5, 5, 0.0, 5), (1, 1, 1, 0.0, 1), (2, 2, 2, 0.0, 2), (0, 0, 0, 0.0, 0)]
    return inputs().join(pd.DataFrame(numbers, columns=DOCUMENTS.names[7:], dtype=object))


def clean_ledger() -> pd.DataFrame:
    return ledger().assign(epsilon=0.0, action="kept", n_words=1, word_id=-1)


@pytest.fixture
def check(write, tmp_path, docs, out, machine):
    """Write one run (or the clean baseline, if there is no plan) and judge it."""

    def _check(documents, ledger, plan=None, given=None):
        name = "none/none/0.0" if plan is None else "madlib/S1/1.0"
        write(f"{name}/documents.parquet", documents, DOCUMENTS)
        write(f"{name}/tokens.parquet", ledger, LEDGER)
        granted = None if plan is None else write("plans/S1/1.0.parquet", plan, PLAN)
        stage = "baseline" if plan is None else "privatize@madlib-S1-1.0"
        one = check_outputs.Run(name, stage, tmp_path / name, granted, 0 if plan is None else V)
        table = inputs() if given is None else given
        given_table = pa.table([pa.array(table[key].tolist(), STRING) for key in INPUTS.names], schema=INPUTS)
        return check_outputs.run(given_table, [one], out, docs, machine)

    return _check


def test_a_sound_run_passes(check, out):
    totals = {
        "n_documents": 4,
        "n_tokens_in": 8,
        "n_tokens_out": 7,
        "n_words_out": 8,
        "n_dropped": 1,
        "n_unprotected": 2,
    }
    assert check(documents(), ledger(), plan()) == {"madlib/S1/1.0": totals}
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["summary"] == {"runs": {"madlib/S1/1.0": totals}}
    assert SECRET not in out.read_text(encoding="utf-8")


def test_a_sound_baseline_passes(check):
    assert check(clean_documents(), clean_ledger())["none/none/0.0"]["n_tokens_out"] == 8


def put(frame: pd.DataFrame, column: str, value: object, at: int = 0) -> pd.DataFrame:
    frame.at[at, column] = value
    return frame


def add(frame: pd.DataFrame, *values: object) -> pd.DataFrame:
    return pd.concat([frame, pd.DataFrame([values], columns=frame.columns, dtype=object)], ignore_index=True)


NOBODY = ("singles", "z", "all", "text", None, None, None, 0, 0, 0, 0.0, 0)
EXTRA = ("singles", "z", "text", 0, "word", 0.0, "kept", 1, -1)

DEFECTS = {
    "document lost": (documents().drop(3), ledger(), "1 of 4 documents of the input are not in the output"),
    "document twice": (add(documents(), *documents().loc[1]), ledger(), "2 of 5 documents are there more than once"),
    "document from nowhere": (add(documents(), *NOBODY), ledger(), "1 of 5 documents are not in the input"),
    "ledger from nowhere": (documents(), add(ledger(), *EXTRA), "1 of 5 documents of the input are not in the output"),
    "no id": (put(documents(), "doc_id", None, 3), ledger(), r"1 of 5 documents of the input are not in the output"),
    "no text": (
        put(documents(), "text", None),
        ledger(),
        r"1 of 4 documents have no id or no text \(up to 1 of these, limit 0",
    ),
    "no second text": (put(documents(), "text_b", None), ledger(), "1 of 4 documents have no id or no text"),
    "other label": (
        put(documents(), "label", "2", 2),
        ledger(),
        "1 of 4 documents have another split, label or attribute",
    ),
    "other split": (
        put(documents(), "split", "test"),
        ledger(),
        "1 of 4 documents have another split, label or attribute",
    ),
    "other attribute": (put(documents(), "attribute", None), ledger(), "1 of 4 documents have another split, label or"),
    "position twice": (
        documents(),
        put(ledger(), "position", 0, 1),
        r"1 of 4 .*repeated or missing positions .*up to 1 texts",
    ),
    "position left out": (
        documents(),
        put(ledger(), "position", 3, 2),
        "1 of 4 documents have repeated or missing position",
    ),
    "no position": (
        documents(),
        put(ledger(), "position", None, 7),
        "1 of 4 documents have repeated or missing positions",
    ),
    "unknown action": (
        documents(),
        put(ledger(), "action", "guessed", 2),
        r"1 of 4 .*class, action or number .*up to 1 tokens",
    ),
    "no action": (documents(), put(ledger(), "action", None, 2), "1 of 4 documents have tokens whose class, action or"),
    "unknown class": (
        documents(),
        put(ledger(), "class", "noun", 2),
        "1 of 4 documents have tokens whose class, action or",
    ),
    "four words": (
        documents(),
        put(ledger(), "n_words", 4),
        "1 of 4 documents have tokens whose class, action or number",
    ),
    "no words": (
        documents(),
        put(ledger(), "n_words", None),
        "1 of 4 documents have tokens whose class, action or number",
    ),
    "token in lost": (
        put(documents(), "n_tokens_in", 6),
        ledger(),
        r"1 of 4 .*took in another number .*by up to 1, limit 0",
    ),
    "token out lost": (
        put(documents(), "n_tokens_out", 3),
        ledger(),
        r"1 of 4 .*put out another number of tokens .*up to 1",
    ),
    "dropped and counted": (
        put(documents(), "n_tokens_out", 5),
        ledger(),
        r"1 of 4 .*put out another number of tokens",
    ),
    "word lost": (
        put(documents(), "n_words_out", 4),
        ledger(),
        r"1 of 4 .*put out another number of words .*up to 1, limit 0",
    ),
    "fewer words than tokens": (
        put(documents(), "n_words_out", 1, 2),
        put(ledger(), "n_words", 0, 7),
        r"1 of 4 .*fewer words than tokens, or more than 3 per token \(by up to 1 words, limit 0\).* 1 more of this",
    ),
    "more words than three per token": (
        put(documents(), "n_words_out", 8, 2),
        put(ledger(), "n_words", 7, 7),
        r"1 of 4 .*fewer words than tokens, or more than 3 per token \(by up to 2 words, limit 0\)",
    ),
    "out of the vocabulary": (
        documents(),
        put(ledger(), "word_id", V),
        r"1 of 4 .*neither in the vocabulary nor kept \(up to 1",
    ),
    "perturbed and nowhere": (
        documents(),
        put(ledger(), "word_id", -1),
        "1 of 4 documents have output tokens that are neither",
    ),
    "kept and somewhere": (
        documents(),
        put(ledger(), "word_id", 5, 2),
        "1 of 4 documents have output tokens that are neither",
    ),
    "no word id": (
        documents(),
        put(ledger(), "word_id", None, 7),
        "1 of 4 documents have output tokens that are neither",
    ),
    "unprotected denied": (
        put(documents(), "n_unprotected", 0),
        ledger(),
        "1 of 4 documents count another number of unprot",
    ),
    "perturbed for nothing": (
        put(documents(), "epsilon_spent", 6.5),
        put(ledger(), "epsilon", 0.0),
        r"1 of 4 documents have perturbed tokens without a finite epsilon, .*\(up to 1 tokens, limit 0\)",
    ),
    "kept at a price": (
        put(documents(), "epsilon_spent", 0.1, 1),
        put(ledger(), "epsilon", 0.1, 5),
        r"1 of 4 documents have .*an epsilon on tokens that were not perturbed \(up to 1 tokens, limit 0\)",
    ),
    "negative epsilon": (
        documents(),
        put(ledger(), "epsilon", -0.5, 6),
        "1 of 4 documents have perturbed tokens without",
    ),
    "infinite epsilon": (
        documents(),
        put(ledger(), "epsilon", inf, 6),
        "1 of 4 documents have perturbed tokens without a fin",
    ),
    "epsilon is no number": (
        documents(),
        put(ledger(), "epsilon", nan, 6),
        "1 of 4 documents have perturbed tokens without",
    ),
    "no epsilon": (
        documents(),
        put(ledger(), "epsilon", None, 6),
        "1 of 4 documents have perturbed tokens without a finite",
    ),
    "overrun": (
        put(documents(), "epsilon_spent", 0.75, 2),
        put(ledger(), "epsilon", 0.75, 6),
        r"1 of 4 documents spend more than their plan grants \(epsilon_overrun up to 0\.25, limit 1e-09\)\. "
        r"Do not pass this output on\. `dvc repro --force privatize@madlib-S1-1\.0`",
    ),
    "overrun in one of two texts": (
        documents(),
        put(put(ledger(), "epsilon", 3.5), "epsilon", 3.0, 4),
        r"1 of 4 documents spend more than their plan grants \(epsilon_overrun up to 0\.2, limit 1e-09\)",
    ),
    "other sum": (
        put(documents(), "epsilon_spent", 9.9),
        ledger(),
        r"1 of 4 .*another epsilon_spent .*up to 0\.0909, limit",
    ),
    "no sum": (put(documents(), "epsilon_spent", None), ledger(), r"1 of 4 .*another epsilon_spent .*up to inf, limit"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_stops(check, stops, defect):
    written, spent, saying = DEFECTS[defect]
    stops(lambda: check(written, spent, plan()), r"^outputs/madlib/S1/1\.0: .*" + saying)


def test_what_is_not_planned_must_not_be_spent(check, stops):
    stops(
        lambda: check(documents(), ledger(), plan().drop(3)),
        r"1 of 4 documents spend more than their plan grants \(epsilon_overrun up to 0\.5, limit 1e-09\)",
    )


def test_no_document_at_all_stops(check, stops):
    stops(
        lambda: check(documents().head(0), ledger().head(0), plan(), inputs().head(0)),
        r"^outputs/madlib/S1/1\.0: the output has no document, at least 1 is needed",
    )


CLEAN_DEFECTS = {
    "text changed": (
        put(clean_documents(), "text", "else", 2),
        clean_ledger(),
        "1 of 4 documents of the clean baseline differ",
    ),
    "something spent": (
        put(clean_documents(), "epsilon_spent", 0.5, 2),
        put(put(clean_ledger(), "epsilon", 0.5, 6), "action", "perturbed", 6),
        "1 of 4 documents have output tokens that are neither in the vocabulary nor kept",
    ),
}


@pytest.mark.parametrize("defect", CLEAN_DEFECTS)
def test_each_defect_of_the_baseline_stops(check, stops, defect):
    written, spent, saying = CLEAN_DEFECTS[defect]
    stops(lambda: check(written, spent), r"^outputs/none/none/0\.0: .*" + saying + ".*`dvc repro --force baseline`")


def test_the_runs_are_those_of_the_grid(tmp_path, monkeypatch):
    """Chosen by params.yaml: what an earlier grid left behind is not judged, what is missing is named."""
    grid = load_params().grid
    monkeypatch.chdir(tmp_path)
    for segmentation in ("word", "gst", "mst"):
        folder = tmp_path / "artifacts/embeddings" / segmentation
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text('{"n_tokens": 7}', encoding="utf-8")
    names = [f"{m}/{s}/{e}" for m in grid.mechanisms for s in grid.strategies for e in grid.epsilons]
    for name in [*names, "none/none/0.0", "madlib/S1/123.0"]:
        (tmp_path / "artifacts/private" / name).mkdir(parents=True)
    for strategy in grid.strategies:
        for epsilon in grid.epsilons:
            plan_file = tmp_path / f"artifacts/plans/madlib/{strategy}/{epsilon}.parquet"
            plan_file.parent.mkdir(parents=True, exist_ok=True)
            plan_file.touch()
    runs = check_outputs.runs_of(grid)
    assert [one.name for one in runs] == ["none/none/0.0", *names]
    assert [one.n_vocabulary for one in runs] == [0] + [7] * len(names)
    assert runs[1].stage == "privatize@" + names[0].replace("/", "-")
    plan_file.unlink()
    with pytest.raises(MissingArtifact, match="plan_budgets"):
        check_outputs.runs_of(grid)
