"""Plans and runs on the embedded default: budgets, ledgers, and the same bytes however the work is
cut."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from lexveil import LexveilError, RequestError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.release.adapters.stage import RunCounts
from lexveil.release.adapters.stage import privatize_documents as privatize
from tests.conftest import estimate_quickly, run_stage
from tests.shared_trees import stand_beside
from tests.tasks.changing import change_params

CELLS = [
    ("madlib", "S1", BaseEpsilon(1.0)),
    ("madlib", "S2", BaseEpsilon(20.0)),
    ("madlib", "S3", BaseEpsilon(20.0)),
    ("madlib", "S4", BaseEpsilon(1.0)),
]


@dataclass(frozen=True)
class Cell:
    """A run of the grid, as its files have it."""

    strategy: str
    metrics: RunCounts
    documents: pd.DataFrame
    log: pd.DataFrame
    plan: pd.DataFrame

    @property
    def spent(self):
        return self.log.groupby("doc_id")["epsilon"].sum()


@pytest.fixture(scope="module", params=CELLS, ids=lambda cell: cell[1])
def cell(request, _built, tmp_path_factory):
    mechanism, strategy, noise = request.param
    out = tmp_path_factory.mktemp("run") / "run"
    with pytest.MonkeyPatch.context() as patch:
        estimate_quickly(patch, out.with_name("figures"))
        stand_beside(_built, tmp_path_factory.mktemp("beside"), patch)
        metrics = privatize(mechanism, strategy, noise, out)
        plan = pd.read_parquet(paths.plan(mechanism, strategy, noise))
    documents = pd.read_parquet(out / "documents.parquet")
    return Cell(strategy, metrics, documents, pd.read_parquet(out / "tokens.parquet"), plan)


def test_a_run_has_the_documents_and_tokens_of_its_plan(cell):
    perturbed = cell.log["action"] == "perturbed"
    assert len(cell.documents) == cell.metrics.n_documents == 440
    assert len(cell.log) == cell.metrics.n_tokens_in == cell.plan["n_tokens"].sum()
    assert perturbed.sum() == cell.plan["n_perturbed"].sum()
    assert ((cell.log["epsilon"] > 0) == perturbed).all()


def test_a_run_spends_the_budget_of_its_plan_and_no_more(cell):
    """S1 and S2 leave what falls to words that are not perturbed, or are in a collocation."""
    spent = cell.spent
    plan = cell.plan.set_index("doc_id")
    assert (spent <= plan["budget"] * (1 + 1e-9)).all()
    full = plan[plan["n_perturbed"] > 0]
    by_words = cell.strategy in ("S1", "S2")
    part = full["n_perturbed"] / full["n_words"] if by_words else 1.0
    assert np.allclose(spent[full.index], part * full["budget"])
    assert np.allclose(cell.documents.set_index("doc_id")["epsilon_spent"], spent)


def test_unknown_words_are_drawn_anew_and_punctuation_is_unprotected(cell):
    actions = cell.log.groupby("class", observed=True)["action"].agg(set)
    assert (actions["oov"], actions["punctuation"]) == ({"sampled"}, {"kept"})
    n_kept = (cell.log["action"] == "kept").sum()
    assert cell.documents["n_unprotected"].sum() == n_kept == cell.metrics.n_kept


@pytest.mark.usefixtures("built")
def test_known_tokens_have_the_row_of_their_words(cell):
    words = paths.embedding({"S1": "word", "S4": "mst"}.get(cell.strategy, "gst")) / "words.txt"
    tokens = words.read_text(encoding="utf-8").splitlines()
    known = cell.log[cell.log["word_id"] >= 0]
    assert {*known.index} == {*cell.log.index[cell.log["action"].isin(["perturbed", "sampled"])]}
    n_words = known["word_id"].map(lambda row: tokens[row].count("_") + 1)
    assert (n_words == known["n_words"]).all()


def test_each_token_gets_the_epsilon_of_the_grid(built, tmp_path):
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


def test_the_baseline_changes_nothing(built, tmp_path):
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
def test_wrong_arguments(built, arguments):
    with pytest.raises(RequestError, match=rf"usage: python -m tasks\.{arguments[0]} MECHANISM"):
        run_stage(*arguments)


def test_a_document_without_a_plan_is_refused(project):
    plan = pq.read_table(paths.plan("madlib", "S3", BaseEpsilon(1.0)))
    pq.write_table(plan.slice(1), paths.plan("madlib", "S3", BaseEpsilon(1.0)))
    with pytest.raises(LexveilError, match="has no budget plan"):
        privatize("madlib", "S3", BaseEpsilon(1.0), project / "out")
    assert not (project / "out").exists()
