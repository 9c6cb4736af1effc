"""The stage that measures N_w and S_w: what it writes, on which words, and that it is right where
that can be known."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from lexveil.base.errors import RequestError
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.embeddings import load_words
from lexveil.io.config import load_params
from tasks import measure_deniability as stage
from tests.shared_trees import share, stand_beside

pytestmark = pytest.mark.slow

SEGMENTATIONS = ("gst", "mst", "word")


@pytest.fixture(scope="module")
def _halved(_listed, tmp_path_factory):
    """The lists of words know half of the vocabulary, as another model would."""
    root = tmp_path_factory.mktemp("halved") / "project"
    shutil.copytree(_listed, root)
    folder = root / "artifacts/word_orders/word/L0"
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    orders = np.load(folder / "orders.npy")
    half = len(words) // 2
    (folder / "words.txt").write_text(
        "".join(f"{word}\n" for word in words[:half]), encoding="utf-8"
    )
    np.save(folder / "orders.npy", orders[:, orders[0] < half])
    share(root)
    return root


@pytest.fixture(autouse=True)
def listed(_halved, tmp_path_factory, monkeypatch):
    return stand_beside(_halved, tmp_path_factory.mktemp("beside"), monkeypatch)


def change(listed, tmp_path, monkeypatch, **grid):
    """Work beside the same artifacts with another grid."""
    params = yaml.safe_load((listed / "params.yaml").read_text(encoding="utf-8"))
    params["grid"] |= grid
    (tmp_path / "artifacts").symlink_to(listed / "artifacts")
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def measured(mechanism, out, *strategies):
    """Return the measurements by segmentation; for these strategies only, if any are given."""
    params = load_params()
    params.grid.strategies[:] = strategies or params.grid.strategies
    stage.run(mechanism, params, out)
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(out.iterdir())
    }


def test_an_epsilon_draws_the_same_whatever_else_the_grid_names(listed, tmp_path, monkeypatch):
    whole = measured("madlib", tmp_path / "whole")
    change(listed, tmp_path, monkeypatch, strategies=["S4"], epsilons=[20.0], mechanisms=["tem"])
    part = measured("madlib", tmp_path / "part")
    assert set(part) == {"mst"}
    assert part["mst"]["statistics"] == whole["mst"]["statistics"][1:]


def test_all_mechanisms_share_words_that_every_list_knows(tmp_path):
    """Mechanisms that do not work on lists have the same words; madlib alone could have taken any
    word.
    """
    made = {
        name: measured(name, tmp_path / name) for name in ("madlib", "tem", "diffractor_geometric")
    }
    for segmentation in SEGMENTATIONS:
        rows = [one[segmentation]["word_rows"] for one in made.values()]
        assert rows[0] == rows[1] == rows[2]
        assert {one[segmentation]["n_shared"] for one in made.values()} == {
            made["madlib"][segmentation]["n_shared"]
        }
    words = load_words("word")
    known = set(
        Path("artifacts/word_orders/word/L0/words.txt").read_text(encoding="utf-8").split("\n")
    )
    assert {words[row] for row in made["madlib"]["word"]["word_rows"]} <= known
    assert made["madlib"]["word"]["n_vocabulary"] > made["madlib"]["word"]["n_shared"] > 100
    # No punctuation, which the policy keeps.
    assert all(any(map(str.isalnum, words[row])) for row in made["madlib"]["word"]["word_rows"])


def test_a_refused_epsilon_has_no_numbers_and_says_why(listed, tmp_path, monkeypatch):
    vectors = (
        np.random.default_rng(1).standard_normal((len(load_words("gst")), 16)).astype(np.float32)
    )
    space = stage.load_embedding("gst")
    monkeypatch.setattr(
        stage, "load_embedding", lambda _: WordSpace(space.tokens, vectors, space.counts)
    )
    change(listed, tmp_path, monkeypatch, strategies=["S2"], epsilons=[1.0, 1e6])
    low, high = measured("truncated_gumbel", tmp_path / "out")["gst"]["statistics"]
    assert (
        low["n_w"] is None
        and low["s_w_expected"] is None
        and "covers an epsilon of more than" in low["refused"]
    )
    assert high["n_w"]["mean"] > 50 and high["refused"] is None


def test_no_word_in_all_lists_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(stage, "shared_rows", lambda *_: np.zeros(0, dtype=np.int64))
    with pytest.raises(RequestError, match=r"every list set of word_orders\.sets"):
        stage.run("madlib", load_params(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
