"""The stages that prepare lists and neighbourhoods, on the small project."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lexveil
from lexveil import RequestError
from lexveil.base import paths
from lexveil.core.embeddings.word_orders import greedy_orders
from lexveil.io.artifacts.embeddings import load_embedding, load_word_orders, load_words
from lexveil.io.artifacts.model_store import find
from tests.conftest import run_stage
from tests.tasks.changing import change_params


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty data folder of the user."""
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))


def add_mine(tokens, vectors):
    """Make a model of word vectors, and return its name with its hash."""
    keyed = SimpleNamespace(index_to_key=tokens, vectors=vectors)
    said = {"license": "CC0-1.0", "language": "en", "collocations": "none"}
    return find(lexveil.add_model(keyed, name="mine", force=True, **said)).pinned


ORDERS = Path("artifacts/word_orders/gst")


@pytest.mark.usefixtures("listed")
def test_lists_have_every_word_once_collocations_too():
    lists = load_word_orders("gst", "L1")
    assert [*lists.words] == load_words("gst")
    rows = np.arange(len(lists.words))
    assert np.array_equal(np.sort(lists.orders), [rows, rows])


@pytest.mark.usefixtures("listed")
def test_the_lists_of_one_model_are_the_same_in_every_variant():
    """L2 is L0, and the first list of L1."""
    one, two, alone = (load_word_orders("gst", name).orders for name in ("L0", "L1", "L2"))
    assert [len(one), len(two), len(alone)] == [1, 2, 1]
    assert np.array_equal(one, alone)
    assert np.array_equal(one[0], two[0])


@pytest.mark.usefixtures("listed")
def test_a_list_goes_on_to_the_nearest_word():
    order = load_word_orders("gst", "L1").orders[1]
    (expected,) = greedy_orders(load_embedding("gst").vectors, [order[0]])
    assert np.array_equal(order, expected)


@pytest.mark.usefixtures("listed")
def test_lists_say_which_model_they_are_of_and_how_near_their_words_are():
    meta = json.loads((ORDERS / "L1/meta.json").read_text(encoding="utf-8"))
    n_words = len(load_words("gst"))
    assert (meta["n_words"], meta["models"]) == (n_words, {"own": {"words": n_words}})
    assert [one["model"] for one in meta["lists"]] == ["own", "own"]
    assert all(0 < one["share_within_100"] <= 1 for one in meta["lists"])
    assert all(one["mean_step"] > 0 for one in meta["lists"])


@pytest.mark.usefixtures("project")
def test_lists_have_the_same_bytes_again():
    run_stage("build_word_orders")
    first = files(ORDERS)
    run_stage("build_word_orders")
    assert files(ORDERS) == first


def test_lists_of_several_models_are_over_the_words_that_all_know(project):
    known = load_words("word")
    tokens = ["zzzunknown", *known[50:400:2]]
    drawn = np.random.default_rng(1).standard_normal((len(tokens), 5)).astype(np.float32)
    name = add_mine(tokens, drawn)
    space = find("mine").space("word")
    vectors = np.asarray(space.vectors)
    tokens = list(space.tokens)
    change_params(word_orders={"models": ["own", "gst", name]})
    run_stage("build_word_orders")
    one, two, alone = (load_word_orders("word", name) for name in ("L0", "L1", "L2"))
    shared = [word for word in known if word in set(tokens) and word in set(load_words("gst"))]
    assert list(one.words) == list(two.words) == shared
    assert list(alone.words) == known
    assert [len(lists.orders) for lists in (one, two, alone)] == [3, 6, 1]
    # Lists stand model by model; the third model's vectors make the third list.
    rows = [tokens.index(word) for word in shared]
    assert np.array_equal(one.orders[2], greedy_orders(vectors[rows], [one.orders[2][0]])[0])
    assert np.array_equal(one.orders, two.orders[::2])
    meta = json.loads(Path("artifacts/word_orders/word/L0/meta.json").read_text(encoding="utf-8"))
    assert [entry["model"] for entry in meta["lists"]] == ["own", "gst", name]

    # Collocations have no vector in other models, so there are only its own lists.
    assert json.loads(Path("artifacts/word_orders/mst/L0/meta.json").read_text())[
        "models"
    ].keys() == {"own"}

    # Another content under the same name is not what params.yaml names.
    add_mine(tokens, vectors * 2)
    with pytest.raises(RequestError, match="the installed model is mine@"):
        run_stage("build_word_orders")


def test_a_brought_model_takes_the_place_of_the_one_of_words(project):
    tokens = ["one", "two", "three"]
    name = add_mine(tokens, np.eye(3, 4, dtype=np.float32))
    change_params(embeddings={"word_model": name})
    before = files(paths.embedding("gst"))
    for segmentation in ("word", "gst"):
        run_stage("train_embeddings", segmentation)
    assert load_words("word") == tokens
    assert files(paths.embedding("gst")) == before
