"""Every mechanism and every strategy through the pipeline's stage, and its lists of near words in
files."""

import json
import pickle
from itertools import cycle

import numpy as np
import pyarrow.parquet as pq
import pytest

from lexveil.base.levels import BaseEpsilon
from lexveil.base.parameters import fields_of
from lexveil.base.runtime.tables import read_json
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.neighborhoods import nearest_words
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.mechanisms.tem import Tem
from lexveil.io.artifacts import mechanisms, neighborhoods
from lexveil.io.artifacts.document_sets import load_documents
from lexveil.io.artifacts.embeddings import load_embedding, load_word_orders
from lexveil.io.artifacts.mechanisms import over_lists
from lexveil.io.artifacts.neighborhoods import (
    add_lists,
    cache_folder,
    key_of,
    open_lists,
    write_lists,
)
from lexveil.release.adapters import stage as stage_adapter
from lexveil.release.adapters.stage import privatize_documents as privatize
from tests.tasks.changing import change_params

STRATEGIES = ("S1", "S2", "S3", "S4")
OTHERS = [name for name in MECHANISMS if name not in ("madlib", "truncated_gumbel")]


@pytest.fixture
def few(listed, monkeypatch):
    """Limit the documents to a few."""
    documents = load_documents().slice(180, 40)
    monkeypatch.setattr(stage_adapter, "load_documents", lambda: documents)


@pytest.mark.parametrize(("mechanism", "strategy"), zip(OTHERS, cycle(STRATEGIES), strict=False))
def test_stage_and_strategies(few, tmp_path, mechanism, strategy):
    """The run adds up, says what it was made with, and is the same whatever the batches.

    Each mechanism with one strategy, each strategy with one mechanism at least: they meet in the
    plan alone.
    """
    metrics = privatize(mechanism, strategy, BaseEpsilon(20.0), tmp_path / "one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage_adapter, "GROUP", 7)
        privatize(mechanism, strategy, BaseEpsilon(20.0), tmp_path / "other")
    for name in ("documents", "tokens"):
        assert (tmp_path / "one" / f"{name}.parquet").exists()
        one, other = (
            pq.read_table(tmp_path / run / f"{name}.parquet").to_pandas()
            for run in ("one", "other")
        )
        assert one.equals(other)
    record = read_json(tmp_path / "one" / "record.json", "privatize")
    assert record["mechanism"] == mechanism and record["metric"] == MECHANISMS[mechanism].metric
    assert (
        set(record["parameters"]) == set(fields_of(MECHANISMS[mechanism].Parameters))
        and record["no_proof"] is None
    )
    assert record["guarantee"]["formula"] == "none"  # an experiment
    assert metrics.n_perturbed > 100 and 0 <= metrics.share_unchanged <= 1
    if MECHANISMS[mechanism].may_lack_words:
        assert any(name.startswith("word_orders/") for name in record["made_with"])


def test_remapping_is_in_the_record(few, tmp_path):
    privatize("madlib", "S3", BaseEpsilon(20.0), tmp_path / "plain")
    change_params(mechanisms={"rank_remap": {"enabled": True, "c": 0.01}})
    privatize("madlib", "S3", BaseEpsilon(20.0), tmp_path / "run")
    plain, remapped = (
        read_json(tmp_path / run / "record.json", "privatize") for run in ("plain", "run")
    )
    assert (
        "rank_remap" not in plain["parameters"]
        and remapped["parameters"]["rank_remap"]["c"] == 0.01
    )
    counts = [read_json(tmp_path / run / "metrics.json", "privatize") for run in ("plain", "run")]
    assert counts[0]["share_unchanged"] != counts[1]["share_unchanged"]


@pytest.mark.parametrize("segmentation", ["word", "mst"])
def test_lists_and_vocabulary_agree(listed, segmentation):
    """Neighbours in the list are the same words, counted in the vocabulary as in the list set."""
    space = load_embedding(segmentation)
    policy = Policy("perturb", "keep", "sample")
    whole = Vocabulary.of(space.tokens, space.vectors, policy)
    lists = load_word_orders(segmentation, "L0")
    vocabulary, orders = over_lists(lists, space, whole)
    allowed = {space.tokens[row] for row in whole.rows}
    expected = [lists.words[row] for row in lists.orders[0] if lists.words[row] in allowed]
    assert [space.tokens[vocabulary.rows[number]] for number in orders[0]] == expected
    assert (vocabulary.number[vocabulary.rows] == np.arange(len(vocabulary.rows))).all()


@pytest.fixture
def some(monkeypatch):
    monkeypatch.setattr(neighborhoods, "LISTS_AT_A_TIME", 50)
    return np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)


def test_lists_grow_and_are_made_once(some, tmp_path, monkeypatch):
    key = key_of(some)
    steps = list[int]()
    add_lists(tmp_path / "x", some, key, 100, on_step=steps.append)
    first = open_lists(tmp_path / "x", key)
    assert first is not None and len(first) == 100 and steps == [50, 50]
    add_lists(tmp_path / "x", some, key, 170, on_step=steps.append)
    assert steps == [50, 50, 50, 20]
    grown = open_lists(tmp_path / "x", key)
    whole = nearest_words(some, np.arange(170))
    assert grown is not None
    np.testing.assert_array_equal(grown.ids, whole.ids)
    np.testing.assert_array_equal(grown.distances, whole.distances)
    monkeypatch.setattr(neighborhoods, "nearest_words", None)
    add_lists(tmp_path / "x", some, key, 170)
    # Another process maps the same file.
    again = pickle.loads(pickle.dumps(grown))
    assert again.folder == grown.folder and len(pickle.dumps(grown)) < 1000
    np.testing.assert_array_equal(again.ids, whole.ids)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: np.save(folder / "near.npy", np.load(folder / "near.npy")[:100]),
        lambda folder: np.save(
            folder / "distances.npy", np.load(folder / "distances.npy").astype(np.float32)
        ),
        lambda folder: (folder / "meta.json").write_text("{"),
    ],
)
def test_what_does_not_fit_is_not_used(some, tmp_path, damage):
    key = key_of(some)
    folder = tmp_path / "x"
    write_lists(nearest_words(some, np.arange(200)), key, folder)
    assert open_lists(folder, key) is not None and open_lists(folder, key_of(some * 2)) is None
    damage(folder)
    assert open_lists(folder, key) is None
    add_lists(folder, some, key, 200)
    assert open_lists(folder, key) is not None


def test_a_long_text_keeps_lists_in_the_cache_and_a_short_one_does_not(
    some,
    tmp_path,
    monkeypatch,
    capsys,
):
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path))
    monkeypatch.setattr(mechanisms, "LISTS_AT_A_TIME", 50)
    key = key_of(some)
    tem = Tem(some)
    words = Vocabulary.of(
        [str(i) for i in range(200)], some, Policy("perturb", "perturb", "sample")
    )
    made = mechanisms.Prepared(tem, words, {}, {}, key)
    made.keep_lists(5.0, 200)  # a list for every fifth token is none for most words
    made.keep_lists(0.001, 10_000)  # uniform proposals are enough
    assert not cache_folder(key).exists()
    made.keep_lists(5.0, 10_000)
    assert len(tem.near.table) == 200 and "lists of 200 words" in capsys.readouterr().err
    assert json.loads((cache_folder(key) / "meta.json").read_text())["listed"] == 200
