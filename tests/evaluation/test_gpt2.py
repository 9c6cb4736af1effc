"""GPT-2 on tiny models, against one pass for each token; nothing is fetched, and no code of a folder is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_models import in_float64, offline_gpt2, save_gpt2

from lexveil.config import EvaluationParams
from lexveil.errors import RequestError
from lexveil.evaluation import gpt2 as module
from lexveil.evaluation.registry import READERS

pytestmark = pytest.mark.slow

WORDS = [f"w{i}" for i in range(12)]
WINDOW, LONG = 8, 16
NAMES = ["w0", "w1", "w2 w3", "w2 w4 w5", "w6", "w7 w8 w9 w10", ""]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return offline_gpt2(tmp_path / "gpt2", WORDS, WINDOW, monkeypatch)


@pytest.fixture
def long_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return offline_gpt2(tmp_path / "gpt2", WORDS, LONG, monkeypatch)


def text_of(n_words: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, n_words))


def by_hand(folder: str, text: str, overlap: int) -> float:
    """Token by token, each from its window, which begins anew after every WINDOW - overlap tokens."""
    import torch

    model, tokenizer = in_float64(folder)
    ids = [2, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    total = 0.0
    for at in range(1, len(ids)):
        step = WINDOW - overlap
        start = 0 if at < WINDOW else ((at - WINDOW) // step + 1) * step
        assert at - start >= overlap or start == 0
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:at]])).logits[0, -1]
        total += float(torch.log_softmax(logits, 0)[ids[at]])
    return total


@pytest.mark.parametrize("n_words", [1, 7, 8, 12, 30])
def test_each_token_is_predicted_once_from_its_window(folder: str, n_words: int) -> None:
    text = text_of(n_words)
    scores = module.Gpt2(folder).score([text])
    assert scores.n_tokens.tolist() == [n_words] and scores.n_unknown.tolist() == [0]
    assert scores.log_sum[0] == pytest.approx(by_hand(folder, text, WINDOW // 2), rel=1e-5)
    if n_words > 8:  # windows that overlap by less see less, and say something else
        assert scores.log_sum[0] != pytest.approx(by_hand(folder, text, 1), rel=1e-3)


def test_a_model_that_knows_nothing_has_a_perplexity_of_the_number_of_its_tokens(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = module.Gpt2(save_gpt2(tmp_path, WORDS, WINDOW, knows_nothing=True))
    scores = model.score([text_of(20), "w1", ""])
    assert scores.n_tokens.tolist() == [20, 1, 0] and scores.average_perplexity() == pytest.approx(16)


@pytest.mark.parametrize("batch", [1, 40, 10_000])
def test_batches_change_nothing_but_the_last_digits(folder: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text_of(n_words, n_words) for n_words in (3, 0, 25, 1, 9, 14)]
    model = module.Gpt2(folder)
    monkeypatch.setattr(module, "BATCH", batch)
    assert model.score(texts).log_sum == pytest.approx([model.score([one]).log_sum[0] for one in texts], rel=1e-5)
    assert len(model.score([]).log_sum) == 0


def test_the_number_of_threads_changes_nothing_and_is_left_as_it_was(folder: str) -> None:
    import torch

    texts, found = [text_of(n_words, n_words) for n_words in range(20)], []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(module.Gpt2(folder=folder).score(texts).log_sum)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*found)


def test_weights_that_are_a_pickle_are_refused(folder: str) -> None:
    import torch
    from safetensors.torch import load_file

    weights = Path(folder, "model.safetensors")
    torch.save(load_file(weights), Path(folder, "pytorch_model.bin"))
    weights.unlink()
    with pytest.raises(RequestError, match=r"evaluation\.gpt2_model.*must hold config\.json, model\.safetensors"):
        module.Gpt2(folder)


def test_code_of_the_folder_is_not_run(folder: str, tmp_path: Path) -> None:
    config = Path(folder, "config.json")
    own = {"auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}}
    Path(folder, "own.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n", encoding="utf-8")
    for model_type in ("gpt2", "another"):
        config.write_text(json.dumps(json.loads(config.read_text()) | own | {"model_type": model_type}))
        if model_type == "gpt2":
            module.Gpt2(folder)
        else:
            with pytest.raises(RequestError, match="cannot read a model of this folder"):
                module.Gpt2(folder)
    assert not (tmp_path / "run").exists()


def test_wrong_folders(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for wrong in ("gpt2", "nobody/nothing", str(tmp_path / "empty"), str(tmp_path / "none")):
        with pytest.raises(RequestError, match=rf"^{wrong} \(params\.yaml: evaluation\.gpt2_model\): .* cannot read"):
            module.Gpt2(wrong)
    other = Path(save_gpt2(tmp_path / "other", [*WORDS, "more"], WINDOW))
    Path(folder, "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    with pytest.raises(RequestError, match="the tokenizer has 17 tokens, the model 16"):
        module.Gpt2(folder)


def test_a_model_without_a_mark_is_refused(folder: str) -> None:
    config = Path(folder, "config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"bos_token_id": None}))
    with pytest.raises(RequestError, match="no mark of a new text"):
        module.Gpt2(folder)


@pytest.mark.parametrize("absent", ["transformers", "torch"])
def test_without_its_libraries_it_names_the_command(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    pytest.importorskip("transformers")
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(RequestError, match=rf"gpt2 needs the package of {absent}.*uv sync --extra neural"):
        module.Gpt2("anywhere")


def word_by_hand(folder: str, text: list[str], column: int, name: str, context: int) -> float:
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


def test_words_are_as_likely_as_their_tokens_one_after_the_other(
    long_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    texts = [rng.choice([*WORDS, "w1 w2"], n).tolist() for n in (1, 5, 30)]
    rows, columns = np.array([0, 1, 1, 2, 2, 2, 2]), np.array([0, 0, 4, 3, 9, 20, 29])
    ids = np.tile(np.arange(len(NAMES)), (len(rows), 1))
    right = [
        [word_by_hand(long_folder, texts[row], column, name, LONG // 2) for name in NAMES]
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    for pack, room in ((1, 1), (30, 4), (1024, 256)):
        monkeypatch.setattr(module, "PACK", pack)
        monkeypatch.setattr(module, "ROOM", room)
        model = READERS["gpt2"].maker(EvaluationParams(reader="gpt2", gpt2_model=long_folder))(NAMES)
        found = model.log_probability(texts, rows, columns, ids, np.full(ids.shape, -np.inf))
        assert found == pytest.approx(np.array(right), rel=1e-5)

        least = found + np.where(rng.random(found.shape) < 0.5, -1, 1)
        some = model.log_probability(texts, rows, columns, ids, least)
        known = least <= found
        assert some[known] == pytest.approx(found[known], rel=1e-5)
        assert (some >= found - 1e-4).all() and ((some <= least) | (some <= found + 1e-4)).all()


def test_places_and_candidates_that_are_none(long_folder: str) -> None:
    model = module.Gpt2Words(NAMES, long_folder)
    none = np.empty(0, dtype=np.int64)
    for texts in ([], [["w1"]]):
        found = model.log_probability(texts, none, none, np.empty((0, 3), dtype=np.int64), np.empty((0, 3)))
        assert found.shape == (0, 3)
    first, ids = np.array([0]), np.array([[2, -1]])
    assert np.isfinite(model.log_probability([["w1"]], first, first, ids, np.array([[-np.inf, np.inf]]))[0, 0])
