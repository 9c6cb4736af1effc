"""Every mechanism and every strategy through the pipeline's stage."""

from itertools import cycle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from lexveil.accounting.budgets import Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.mechanisms import over_lists
from lexveil.artifacts.word_orders import load_word_orders
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.parameters import fields_of
from lexveil.privatization.adapters import stage as stage_adapter
from lexveil.privatization.adapters.stage import privatize_documents as privatize
from lexveil.runtime.tables import read_json

STRATEGIES = ("S1", "S2", "S3", "S4")
OTHERS = [name for name in MECHANISMS if name not in ("madlib", "truncated_gumbel")]


@pytest.fixture(autouse=True)
def _few(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = load_documents().slice(180, 40)
    monkeypatch.setattr(stage_adapter, "load_documents", lambda: documents)


@pytest.mark.parametrize(("mechanism", "strategy"), zip(OTHERS, cycle(STRATEGIES), strict=False))
def test_stage_and_strategies(listed: Path, tmp_path: Path, mechanism: str, strategy: str) -> None:
    """The run adds up, says what it was made with, and is the same whatever the batches.

    Each mechanism with one strategy, each strategy with one mechanism at least: they meet in the plan alone.
    """
    metrics = privatize(mechanism, strategy, 20.0, tmp_path / "one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_adapter, "GROUP", 7)
        privatize(mechanism, strategy, 20.0, tmp_path / "other")
    for name in ("documents", "tokens"):
        assert (tmp_path / "one" / f"{name}.parquet").exists()
        one, other = (pq.read_table(tmp_path / run / f"{name}.parquet").to_pandas() for run in ("one", "other"))
        assert one.equals(other)
    record = read_json(tmp_path / "one" / "record.json", "privatize")
    assert record["mechanism"] == mechanism and record["metric"] == MECHANISMS[mechanism].metric
    assert set(record["parameters"]) == set(fields_of(MECHANISMS[mechanism].Parameters)) and record["no_proof"] is None
    assert record["guarantee"]["formula"] == "none"  # an experiment
    assert metrics.n_perturbed > 100 and 0 <= metrics.share_unchanged <= 1
    if MECHANISMS[mechanism].on_lists:
        assert any(name.startswith("word_orders/") for name in record["made_with"])


def test_remapping_is_in_the_record(listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    privatize("madlib", "S3", 20.0, tmp_path / "plain")
    params = yaml.safe_load((listed / "params.yaml").read_text(encoding="utf-8"))
    params["mechanisms"]["rank_remap"] |= {"enabled": True, "c": 0.01}
    for name in ("artifacts", "data"):
        (tmp_path / name).symlink_to(listed / name)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    privatize("madlib", "S3", 20.0, tmp_path / "run")
    plain, remapped = (read_json(tmp_path / run / "record.json", "privatize") for run in ("plain", "run"))
    assert "rank_remap" not in plain["parameters"] and remapped["parameters"]["rank_remap"]["c"] == 0.01
    counts = [read_json(tmp_path / run / "metrics.json", "privatize") for run in ("plain", "run")]
    assert counts[0]["share_unchanged"] != counts[1]["share_unchanged"]


@pytest.mark.parametrize("segmentation", ["word", "mst"])
def test_lists_and_vocabulary_agree(listed: Path, segmentation: str) -> None:
    """Neighbours in the list are the same words, counted in the vocabulary as in the list set."""
    space, policy = load_embedding(segmentation), Policy("perturb", "keep", "sample")
    whole = Vocabulary.of(space.tokens, space.vectors, policy)
    lists = load_word_orders(segmentation, "L0")
    vocabulary, orders = over_lists(lists, space, whole)
    allowed = {space.tokens[row] for row in whole.rows}
    expected = [lists.words[row] for row in lists.orders[0] if lists.words[row] in allowed]
    assert [space.tokens[vocabulary.rows[number]] for number in orders[0]] == expected
    assert (vocabulary.number[vocabulary.rows] == np.arange(len(vocabulary.rows))).all()
