"""The stages that train: what they write, and that a killed training goes on and ends with the same
bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import Model, ParameterError, RequestError
from lexveil.base import paths
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.budgets import Policy
from lexveil.core.embeddings.purposes import Purpose
from lexveil.core.language_models.kneser_ney import train
from lexveil.core.language_models.language_model import NgramModel
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.language_models import load_language_model
from lexveil.io.artifacts.user_lists import read_purpose, write_purpose
from lexveil.lab.collocations.sampling import TOKENS
from lexveil.readers.public_words import PublicWords
from tasks import train_language_model as stage
from tests.conftest import ROOT, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

# Dies as if the machine were taken away, right after the checkpoint of an epoch.
DIE_AFTER = """
import os, signal, sys
from tasks import train_embeddings
from lexveil.io.artifacts.training import Checkpoints

last, save = int(sys.argv.pop()), Checkpoints.save

def save_and_die(self, state):
    save(self, state)
    if state.epoch == last:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoints.save = save_and_die
train_embeddings.main()
"""


def written():
    files = [*paths.embedding("gst").iterdir(), paths.METRICS / "embeddings/gst.json"]
    return {str(file): file.read_bytes() for file in files}


def metrics():
    return json.loads((paths.METRICS / "embeddings/gst.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_killed_training_goes_on(project, capsys, epoch):
    """SIGKILL after epoch 1 of 3, and after the last one, before anything is written."""
    change_params(embeddings={"epochs": 3})
    run_stage("train_embeddings", "gst")
    undisturbed = written()
    command = [sys.executable, "-c", DIE_AFTER, "gst", str(epoch)]
    # As DVC does before it runs a stage.
    for file in undisturbed:
        Path(file).unlink()
    # with the same kernel of OpenBLAS as this process
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (paths.METRICS / "embeddings/gst.json").exists()
    capsys.readouterr()
    run_stage("train_embeddings", "gst")
    assert (
        f"continuing an interrupted training: {epoch} of 3 epochs are done"
        in capsys.readouterr().err
    )
    assert written() == undisturbed
    assert not list(Path(".lexveil/work").rglob("*.npy"))  # nothing is left of it


def test_unit_vectors_and_a_list(project, capsys):
    """Lengths of the written space are 1, or what the list says; the figures of quality are those
    as trained."""
    before = metrics()
    raw = np.array(load_embedding("gst").vectors)
    word = next(token for token in load_embedding("gst").tokens if token.isalpha())
    Path("list.csv").write_text(f"word,factor\n{word},0\nunheard-of,0\n", encoding="utf-8")
    named = f"list.csv@{sha256(Path('list.csv'))[:12]}"
    change_params(embeddings={"scale": "unit", "scale_list": named})
    capsys.readouterr()
    run_stage("train_embeddings", "gst")
    assert f"1 of 2 words of {named} are in the vocabulary" in capsys.readouterr().out
    after = metrics()
    unit = np.array(load_embedding("gst").vectors)
    lengths = np.where(
        [word in token.split("_") for token in load_embedding("gst").tokens], 0.0, 1.0
    )
    assert np.allclose(np.linalg.norm(unit, axis=1), lengths, atol=1e-6) and not lengths.all()
    assert np.allclose(
        unit * np.linalg.norm(raw, axis=1, keepdims=True), raw * lengths[:, None], atol=1e-6
    )
    assert after["norm_median"] == after["norm_largest"] == 1.0
    assert after["quality"] == before["quality"]
    meta = json.loads((paths.embedding("gst") / "meta.json").read_text(encoding="utf-8"))
    assert (meta["scale"], meta["scale_list"]) == ("unit", named)


def test_purposes_are_axes_of_the_space_and_said_of_what_is_made_with_it(project, capsys):
    """A project's own model keeps them without being asked; what is exported has the space without
    them."""
    tokens = load_embedding("word").tokens
    raw = np.array(load_embedding("word").vectors)
    words = [token for token in tokens if token.isalpha()]
    write_purpose(
        {word: (1.0, -1.0)[number % 2] for number, word in enumerate(words[:40])},
        "a toy",
        is_public=True,
        file=Path("side.tsv"),
    )
    named = f"side.tsv@{sha256(Path('side.tsv'))[:12]}"
    change_params(embeddings={"purposes": {named: 2.0}})
    capsys.readouterr()
    run_stage("train_embeddings", "word")
    assert (
        f"40 of {len(tokens):,} tokens are on the scale of purpose side=2"
        in capsys.readouterr().out
    )
    space = load_embedding("word")
    assert np.array_equal(space.vectors[:, :-1], raw)
    side = read_purpose(Path("side.tsv"))
    scores = Purpose("side", 2.0, side.scores, "", is_public=True).of(tokens)
    assert np.array_equal(np.sign(space.vectors[:, -1]), np.sign(scores))
    meta = json.loads((paths.embedding("word") / "meta.json").read_text(encoding="utf-8"))
    assert (
        meta["purposes"] == {"side=2": sha256(Path("side.tsv"))}
        and meta["dimensions"] == raw.shape[1] + 1
    )
    own = Model.load(Path(), "own")
    assert own.embedding("S1").vectors.shape == space.vectors.shape
    told = PublicWords.of(own, "tem", "S1", Policy("perturb", "keep", "sample")).expected(6.0).told
    assert told.keys() == {"side=2"} and 0 < told["side=2"].share < 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own", "own is not part of the library"),
        ("side.tsv@000000000000", "the file is now side.tsv@"),
        ("absent.tsv@000000000000", "the file absent.tsv does not exist"),
    ],
)
def test_purposes_that_are_refused(project, name, said):
    Path("side.tsv").write_text("fire\t1\n", encoding="utf-8")
    change_params(embeddings={"purposes": {name: 1.0}})
    with pytest.raises(RequestError, match=said):
        run_stage("train_embeddings", "word")


WORDS = [".", "the", "rare", "cat", "sat"]
SENTENCES = [[1, 3, 4, 0], [1, 3, 0], [3], [1, 2, 3, 4, 0]]  # 4, 3, 1 and 5 tokens


@pytest.fixture
def tokens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"doc_id": f"d{i // 2}", "sentence_id": i % 2, "ids": ids}
        for i, ids in enumerate(SENTENCES)
    ]
    paths.TOKENS.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, TOKENS), paths.TOKENS, row_group_size=2)
    return paths.TOKENS


@pytest.mark.parametrize(("limit", "taken"), [(13, 4), (12, 3), (7, 2), (1, 1)])
def test_as_many_sentences_as_the_limit_allows_and_at_least_one(tokens, limit, taken):
    ids, offsets = stage.read_sentences(tokens, limit)
    assert ids.tolist() == [one for sentence in SENTENCES[:taken] for one in sentence]
    assert np.diff(offsets).tolist() == [len(sentence) for sentence in SENTENCES[:taken]]


def test_what_is_loaded_is_what_was_trained(tokens):
    stage.run(tokens, WORDS, 13, paths.LANGUAGE_MODEL)
    direct = NgramModel(train(*stage.read_sentences(tokens, 13), len(WORDS)), WORDS)
    texts = ["The cat sat.", "the dog sat", "", "cat. rare the"]
    assert np.array_equal(load_language_model().score(texts).log_sum, direct.score(texts).log_sum)


def test_words_that_were_not_learnt_from_are_unknown(tokens):
    stage.run(tokens, WORDS, 8, paths.LANGUAGE_MODEL)
    model = load_language_model()
    assert model.model.n_words == 4
    assert model.score(["the cat", "the rare cat"]).n_unknown.tolist() == [0, 1]


def test_a_corpus_without_sentences_is_refused(tokens):
    pq.write_table(TOKENS.empty_table(), tokens)
    with pytest.raises(ParameterError, match="received no sentences"):
        stage.run(tokens, WORDS, 13, paths.LANGUAGE_MODEL)
    assert not paths.LANGUAGE_MODEL.exists()


def test_nothing_is_trained_for_a_model_made_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    change_params(evaluation={"language_model": "gpt2", "gpt2_model": "somewhere"})
    run_stage("train_language_model")
    assert [file.name for file in paths.LANGUAGE_MODEL.iterdir()] == ["meta.json"]
    about = json.loads((paths.LANGUAGE_MODEL / "meta.json").read_text(encoding="utf-8"))
    assert about == {"language_model": "gpt2", "is_trained": False}
