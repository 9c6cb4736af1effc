"""Lists of near words in files: whose they are, how they grow, and that nobody needs them."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lexveil.accounting.budgets import Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts import mechanisms, neighborhoods
from lexveil.artifacts.neighborhoods import add_lists, cache_folder, key_of, open_lists, write_lists
from lexveil.embeddings.neighborhoods import nearest_words
from lexveil.mechanisms.tem import Tem


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.setattr(neighborhoods, "BLOCK", 50)
    return np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)


def test_lists_grow_and_are_made_once(some: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, steps = key_of(some), list[int]()
    add_lists(tmp_path / "x", some, key, 100, on_step=steps.append)
    first = open_lists(tmp_path / "x", key)
    assert first is not None and len(first) == 100 and steps == [50, 50]
    add_lists(tmp_path / "x", some, key, 170, on_step=steps.append)
    assert steps == [50, 50, 50, 20]
    grown, whole = open_lists(tmp_path / "x", key), nearest_words(some, np.arange(170))
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
        lambda folder: np.save(folder / "distances.npy", np.load(folder / "distances.npy").astype(np.float32)),
        lambda folder: (folder / "meta.json").write_text("{"),
    ],
)
def test_what_does_not_fit_is_not_used(some: np.ndarray, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    key, folder = key_of(some), tmp_path / "x"
    write_lists(nearest_words(some, np.arange(200)), key, folder)
    assert open_lists(folder, key) is not None and open_lists(folder, key_of(some * 2)) is None
    damage(folder)
    assert open_lists(folder, key) is None
    add_lists(folder, some, key, 200)
    assert open_lists(folder, key) is not None


def test_a_long_text_keeps_lists_in_the_cache_and_a_short_one_does_not(
    some: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path))
    monkeypatch.setattr(mechanisms, "BLOCK", 50)
    key, tem = key_of(some), Tem(some)
    words = Vocabulary.of([str(i) for i in range(200)], some, Policy("perturb", "perturb", "sample"))
    made = mechanisms.Prepared(tem, words, {}, {}, key)
    made.keep_lists(5.0, 200)  # a list for every fifth token is none for most words
    made.keep_lists(0.001, 10_000)  # uniform proposals are enough
    assert not cache_folder(key).exists()
    made.keep_lists(5.0, 10_000)
    assert len(tem.near.table) == 200 and "lists of 200 words" in capsys.readouterr().err
    assert json.loads((cache_folder(key) / "meta.json").read_text())["listed"] == 200
