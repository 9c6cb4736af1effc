"""Words as GPT-2 expects them, on tiny models: against one pass for each candidate, whatever is read together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_models import in_float64, offline_gpt2

from lexveil.config import EvaluationParams
from lexveil.errors import RequestError
from lexveil.evaluation import next_words as module
from lexveil.evaluation.registry import READERS

pytestmark = pytest.mark.slow

WORDS = [f"w{i}" for i in range(12)]
NAMES = ["w0", "w1", "w2 w3", "w2 w4 w5", "w6", "w7 w8 w9 w10", ""]
WINDOW = 16


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return offline_gpt2(tmp_path / "gpt2", WORDS, WINDOW, monkeypatch)


def by_hand(folder: str, text: list[str], column: int, name: str, context: int) -> float:
    """Token by token, each in a pass of its own, from the mark or the window that the words before it end in."""
    import torch

    model, tokenizer = in_float64(folder)
    cut = lambda words: tokenizer(words, add_special_tokens=False)["input_ids"]  # noqa: E731
    before = [2, *cut(" ".join(text[:column]))]
    while len(before) > context:
        before = before[context // 2 :]
    total = 0.0
    for token in cut(name) or [2]:
        with torch.no_grad():
            logits = model(torch.tensor([before])).logits[0, -1]
        total += float(torch.log_softmax(logits, 0)[token])
        before = [*before, token]
    return total


def test_words_are_as_likely_as_their_tokens_one_after_the_other(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    texts = [rng.choice([*WORDS, "w1 w2"], n).tolist() for n in (1, 5, 30)]
    rows, columns = np.array([0, 1, 1, 2, 2, 2, 2]), np.array([0, 0, 4, 3, 9, 20, 29])
    ids = np.tile(np.arange(len(NAMES)), (len(rows), 1))
    right = [
        [by_hand(folder, texts[row], column, name, WINDOW // 2) for name in NAMES]
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    for pack, room in ((1, 1), (30, 4), (1024, 256)):
        monkeypatch.setattr(module, "PACK", pack)
        monkeypatch.setattr(module, "ROOM", room)
        model = READERS["gpt2"].maker(EvaluationParams(reader="gpt2", gpt2_model=folder))(NAMES)
        found = model.log_probability(texts, rows, columns, ids, np.full(ids.shape, -np.inf))
        assert found == pytest.approx(np.array(right), rel=1e-5)

        least = found + np.where(rng.random(found.shape) < 0.5, -1, 1)
        some = model.log_probability(texts, rows, columns, ids, least)
        known = least <= found
        assert some[known] == pytest.approx(found[known], rel=1e-5)
        assert (some >= found - 1e-4).all() and ((some <= least) | (some <= found + 1e-4)).all()


def test_places_and_candidates_that_are_none(folder: str) -> None:
    model = module.Gpt2Words(NAMES, folder)
    none = np.empty(0, dtype=np.int64)
    assert model.log_probability([], none, none, np.empty((0, 3), dtype=np.int64), np.empty((0, 3))).shape == (0, 3)
    ids = np.array([[2, -1]])
    found = model.log_probability([["w1"]], none + 0, none + 0, ids[:0], np.empty((0, 2)))
    assert found.shape == (0, 2)
    found = model.log_probability([["w1"]], np.array([0]), np.array([0]), ids, np.array([[-np.inf, np.inf]]))
    assert np.isfinite(found[0, 0])


def test_a_folder_without_a_model_is_named() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(RequestError, match=r"^nowhere \(params\.yaml: evaluation\.gpt2_model\): .* cannot read"):
        module.Gpt2Words(NAMES, "nowhere")


def test_without_its_libraries_it_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(RequestError, match=r"gpt2 needs the package of transformers.*uv sync --extra neural"):
        module.Gpt2Words(NAMES, "anywhere")
