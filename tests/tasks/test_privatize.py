"""Plans and runs on the embedded default: budgets, ledgers, and the same bytes however the work is
cut."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lexveil import LexveilError, RequestError, paths
from lexveil.artifacts.document_sets import load_documents
from lexveil.levels import BaseEpsilon, NoiseSetting
from lexveil.privatization.adapters.stage import privatize_documents as privatize
from tests.conftest import run_stage
from tests.tasks.changing import change_params

CELLS = [
    ("madlib", "S1", BaseEpsilon(1.0)),
    ("madlib", "S2", BaseEpsilon(20.0)),
    ("madlib", "S3", BaseEpsilon(20.0)),
    ("madlib", "S4", BaseEpsilon(1.0)),
]


@pytest.mark.parametrize(("mechanism", "strategy", "noise"), CELLS)
def test_a_run_adds_up(
    built: Path, tmp_path: Path, mechanism: str, strategy: str, noise: NoiseSetting
) -> None:
    metrics = privatize(mechanism, strategy, noise, tmp_path / "run")
    documents = pq.read_table(tmp_path / "run" / "documents.parquet").to_pandas()
    ledger = pq.read_table(tmp_path / "run" / "tokens.parquet").to_pandas()
    plan = pq.read_table(paths.plan("madlib", strategy, noise)).to_pandas()

    assert len(documents) == metrics.n_documents == 440
    assert len(ledger) == metrics.n_tokens_in == plan["n_tokens"].sum()
    perturbed = ledger["action"] == "perturbed"
    assert ((ledger["epsilon"] > 0) == perturbed).all()
    assert (ledger["action"] == "perturbed").sum() == plan["n_perturbed"].sum()
    spent = ledger.groupby("doc_id")["epsilon"].sum()
    budget = plan.set_index("doc_id")["budget"]
    assert (spent <= budget * (1 + 1e-9)).all()
    full = plan[plan["n_perturbed"] > 0].set_index("doc_id")
    # S1 and S2 leave what falls to words that are not perturbed, or are in a collocation.
    by_words = strategy in ("S1", "S2")
    part = full["n_perturbed"] / full["n_words"] if by_words else 1.0
    assert np.allclose(spent[full.index], part * full["budget"])
    assert np.allclose(documents.set_index("doc_id")["epsilon_spent"], spent)
    # The default policy: unknown words are drawn anew, punctuation is kept and counted as
    # unprotected.
    assert set(ledger[ledger["class"] == "oov"]["action"]) == {"sampled"}
    assert set(ledger[ledger["class"] == "punctuation"]["action"]) == {"kept"}
    assert documents["n_unprotected"].sum() == (ledger["action"] == "kept").sum() == metrics.n_kept
    words = paths.embedding({"S1": "word", "S4": "mst"}.get(strategy, "gst")) / "words.txt"
    tokens = words.read_text(encoding="utf-8").splitlines()
    known = ledger["word_id"] >= 0
    assert (known == ledger["action"].isin(["perturbed", "sampled"])).all()
    counted = ledger[known]["word_id"].map(lambda row: tokens[row].count("_") + 1)
    assert (counted == ledger[known]["n_words"]).all()


def test_each_token_gets_the_epsilon_of_the_grid(built: Path, tmp_path: Path) -> None:
    change_params(
        grid={"budget": "token", "mechanisms": ["tem"], "strategies": ["S1"], "epsilons": [20.0]}
    )
    run_stage("plan_budgets")
    run_stage("check_plans")
    run = "tem", "S1", BaseEpsilon(20.0)
    assert json.loads(paths.plan_check(*run).read_text())["success"]
    privatize(*run, tmp_path / "run")
    log = pq.read_table(tmp_path / "run" / "tokens.parquet").to_pandas()
    perturbed = log[log["action"] == "perturbed"]
    assert set(perturbed["epsilon"]) == {20.0} and not log["epsilon"][log["epsilon"] == 0].empty
    longest = perturbed.groupby(["dataset", "doc_id"]).size().groupby("dataset").max()
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["document_budget"] == (20.0 * longest).to_dict()
    assert record["base_epsilon"] == 20.0


def test_the_baseline_changes_nothing(built: Path, tmp_path: Path) -> None:
    metrics = privatize("none", "none", BaseEpsilon(0.0), tmp_path / "run")
    table = pq.read_table(tmp_path / "run" / "documents.parquet")
    assert table.column("text").to_pylist() == load_documents().column("text").to_pylist()
    assert metrics.unprotected_share == 1.0
    assert set(table.column("epsilon_spent").to_pylist()) == {0.0}


@pytest.mark.parametrize(
    "arguments",
    [
        ("privatize",),
        ("privatize", "madlib", "S3"),
        ("privatize", "madlb", "S3", "1.0"),
        ("privatize", "madlib", "S9", "1.0"),
        ("privatize", "madlib", "S3", "x"),
        ("privatize", "none", "S1", "1.0"),
        ("evaluate",),
        ("evaluate", "madlib", "S1", "much"),
    ],
)
def test_wrong_arguments(built: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(RequestError, match=rf"usage: python -m tasks\.{arguments[0]} MECHANISM"):
        run_stage(*arguments)


def test_a_document_without_a_plan_is_refused(project: Path) -> None:
    plan = pq.read_table(paths.plan("madlib", "S3", BaseEpsilon(1.0)))
    pq.write_table(plan.slice(1), paths.plan("madlib", "S3", BaseEpsilon(1.0)))
    with pytest.raises(LexveilError, match="has no budget plan"):
        privatize("madlib", "S3", BaseEpsilon(1.0), project / "out")
    assert not (project / "out").exists()
