"""GPT-2 on tiny models, against one pass for each token; nothing is fetched, and no code of a folder is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_models import in_float64, offline_gpt2, save_gpt2

from lexveil.errors import RequestError
from lexveil.evaluation import gpt2 as module

pytestmark = pytest.mark.slow

WORDS = [f"w{i}" for i in range(12)]
WINDOW = 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return offline_gpt2(tmp_path / "gpt2", WORDS, WINDOW, monkeypatch)


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
