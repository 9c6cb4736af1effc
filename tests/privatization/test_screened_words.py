"""Words of the public list do not come out; what is written in their place follows from the drawn word alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from asking import privatize_file

from lexveil.artifacts.model import Model
from lexveil.artifacts.screened_words import screened_words
from lexveil.privatization.engine.engine import Engine, is_screened, nearest_of_others
from lexveil.privatization.engine.worker import Components
from lexveil.privatization.settings import resolve_settings
from lexveil.request import Request

TEXT = "the waiter brought cold soup and warm beer to a large table near the old window . " * 40


def test_the_nearest_of_the_others_takes_the_place_by_hand() -> None:
    vectors = np.array([[0.0], [1.0], [1.5], [5.0]], dtype=np.float32)
    screened = np.array([False, True, False, True])
    assert nearest_of_others(vectors, screened).tolist() == [0, 2, 2, 2]
    assert nearest_of_others(vectors, np.zeros(4, dtype=bool)) is None
    assert nearest_of_others(vectors, np.ones(4, dtype=bool)) is None
    assert is_screened(["bad", "good_bad", "badly"], frozenset({"bad"})).tolist() == [True, True, False]


@pytest.mark.parametrize(("mechanism", "strategy"), [("tem", "S1"), ("madlib", "S3"), ("diffractor_geometric", "S1")])
def test_no_word_of_the_list_comes_out_whatever_goes_in(tmp_path: Path, mechanism: str, strategy: str) -> None:
    """At an epsilon at which all words are likely, and of texts that are made of such words."""
    listed = sorted(screened_words().words)
    (tmp_path / "in.txt").write_text(f"{TEXT}{' '.join(listed[:300])}\n", encoding="utf-8")
    how = {"mechanism": mechanism, "strategy": strategy, "epsilon": 0.5, "seed": 1, "model": "en", "oov": "sample"}
    done = privatize_file(tmp_path / "in.txt", tmp_path / "out.txt", **how)
    words = (tmp_path / "out.txt").read_text(encoding="utf-8").replace(".", "").split()
    assert len(words) > 500 and not screened_words().words.intersection(words)
    assert done.record.screen == screened_words().sha256
    assert any("public list" in reason for reason in done.record.guarantee.in_release.because)
    free = privatize_file(tmp_path / "in.txt", tmp_path / "free.txt", unscreened=True, **how)
    words = (tmp_path / "free.txt").read_text(encoding="utf-8").replace(".", "").split()
    assert screened_words().words.intersection(words) and free.record.screen is None
    assert not any("public list" in reason for reason in free.record.guarantee.in_release.because)


def test_it_is_post_processing_of_the_same_draws(tmp_path: Path) -> None:
    """With the same seed, tokens that draw no word of the list are the same with it and without."""
    model = Model.load(name="en")
    settings = resolve_settings(Request(mechanism="tem", strategy="S1", epsilon=3.0, seed=1), model)
    engine = Engine(settings, model)
    assert isinstance(engine.worker().components, Components) and engine.instead is not None
    screened = engine.instead != np.arange(len(engine.instead))
    tokens = [engine.lexicon.tokens[row] for row in engine.vocabulary.rows.tolist()]
    assert (screened == is_screened(tokens, screened_words().words)).all() and not screened[engine.instead].any()
    unscreened = resolve_settings(Request(mechanism="tem", strategy="S1", epsilon=3.0, seed=1, unscreened=True), model)
    assert Engine(unscreened, model).instead is None
