"""The fine-tuned transformer on a tiny DeBERTa: what it learns, from what, with which settings, and that it repeats."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import no_network, save_deberta

from lexveil.errors import RequestError
from lexveil.evaluation import transformer as module
from lexveil.evaluation.base import joined

pytestmark = pytest.mark.slow

GOOD = [f"a lovely film number{i}" for i in range(8)]
BAD = [f"a dreadful film number{i}" for i in range(8)]
CLASSES = ["good"] * 8 + ["bad"] * 8
WORDS = sorted({word for text in GOOD + BAD for word in text.split()})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    return save_deberta(tmp_path_factory.mktemp("deberta"), WORDS)


@pytest.fixture
def folder(saved: str, monkeypatch: pytest.MonkeyPatch) -> str:
    no_network(monkeypatch)
    return saved


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate and a number of epochs at which a model of random weights learns."""
    monkeypatch.setattr(module, "RATE", 1e-2)
    monkeypatch.setattr(module, "EPOCHS", 15)


def test_learns_the_word_that_decides_and_no_class_that_nothing_decides(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager(monkeypatch)
    model = module.Transformer(0, folder).fit(GOOD + BAD, CLASSES)
    assert model.name == "transformer"
    assert model.predict(["a lovely", "dreadful film", "lovely number9"]) == ["good", "bad", "good"]
    crossed = module.Transformer(0, folder).fit(GOOD + BAD, ["x", "y"] * 8)
    assert len(set(crossed.predict(["a lovely film", "a dreadful film"]))) == 1
    assert model.predict([]) == []


def test_one_epoch_and_else_the_defaults_of_the_trainer(folder: str) -> None:
    from transformers import TrainingArguments

    args = module.Transformer(5, folder).fit(GOOD + BAD, CLASSES)._trainer.args
    default = TrainingArguments("unused")
    assert (args.num_train_epochs, args.per_device_train_batch_size, args.learning_rate, args.seed) == (1, 8, 5e-5, 5)
    for name in (
        *("per_device_train_batch_size", "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay"),
        *("optim", "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm", "gradient_accumulation_steps"),
    ):
        assert getattr(args, name) == getattr(default, name), name


def scores(model: module.Transformer, texts: list[str]) -> np.ndarray:
    return model._trainer.predict(model._encoded(texts)).predictions


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads(folder: str) -> None:
    import torch

    found, before = [], torch.get_num_threads()
    try:
        for seed, threads in ((3, 1), (3, 2), (4, 1)):
            torch.set_num_threads(threads)
            torch.manual_seed(threads)  # what others drew before decides nothing
            model = module.Transformer(seed, folder).fit(GOOD + BAD, CLASSES)
            found.append(scores(model, GOOD + BAD))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def asked(monkeypatch: pytest.MonkeyPatch, folder: str, texts: list[str]) -> list[dict[str, Any]]:
    """What the library is given when ``texts`` are asked about."""
    import transformers

    seen: list[dict[str, Any]] = []
    predict = transformers.Trainer.predict

    def recorded(self, examples):
        seen.extend(examples)
        return predict(self, examples)

    monkeypatch.setattr(transformers.Trainer, "predict", recorded)
    module.Transformer(0, folder).fit(GOOD + BAD, CLASSES).predict(texts)
    return seen


def test_pairs_reach_the_model_as_pairs(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[CLS] is 2 and [SEP] is 3; the mark between a pair is no token."""
    a, film = 4 + WORDS.index("a"), 4 + WORDS.index("film")
    single, pair = asked(monkeypatch, folder, joined(["a film", "a"], [None, "film a"]))
    assert single["input_ids"] == [2, a, film, 3]
    assert pair["input_ids"] == [2, a, 3, film, a, 3]


def test_a_pair_in_the_other_order_is_another(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    eager(monkeypatch)
    pairs = joined(["lovely"] * 8 + ["dreadful"] * 8, ["dreadful"] * 8 + ["lovely"] * 8)
    model = module.Transformer(1, folder).fit(pairs, ["one"] * 8 + ["other"] * 8)
    assert model.predict(joined(["lovely", "dreadful"], ["dreadful", "lovely"])) == ["one", "other"]


def test_long_texts_and_the_longer_of_a_pair_are_cut(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the model's 32; then to LONGEST, where the model takes more."""
    long = "a " * 400
    assert [len(one["input_ids"]) for one in asked(monkeypatch, folder, [long])] == [32]
    monkeypatch.setattr(module, "LONGEST", 10)
    one, pair = asked(monkeypatch, folder, joined([long, "film film"], [None, long]))
    assert len(one["input_ids"]) == 10
    assert pair["input_ids"][1:4] == [4 + WORDS.index("film")] * 2 + [3] and len(pair["input_ids"]) == 10


def test_nothing_is_left_behind(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    before = sorted(Path(folder).iterdir())
    module.Transformer(0, folder).fit(GOOD + BAD, CLASSES).predict(GOOD)
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "temporary"] and sorted(Path(folder).iterdir()) == before


def test_wrong_folders_and_absent_libraries(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match=r"evaluation\.transformer_model.*classifier transformer cannot read"):
        module.Transformer(0, str(tmp_path)).fit(GOOD + BAD, CLASSES)
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(RequestError, match=r"transformer needs the package of accelerate.*uv sync --extra neural"):
        module.Transformer(0, folder).fit(GOOD + BAD, CLASSES)
