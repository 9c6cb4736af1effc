"""The stage: what it writes, and that a killed training goes on and ends with the same bytes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from lexveil import paths
from lexveil.artifacts.embeddings import load_embedding
from lexveil.runtime.hashes import sha256
from tests.conftest import ROOT, run_stage

pytestmark = pytest.mark.slow

# Dies as if the machine were taken away, right after the checkpoint of an epoch.
DIE_AFTER = """
import os, signal, sys
from tasks import train_embeddings
from lexveil.artifacts.training_checkpoints import Checkpoints

last, save = int(sys.argv.pop()), Checkpoints.save

def save_and_die(self, state):
    save(self, state)
    if state.epoch == last:
        os.kill(os.getpid(), signal.SIGKILL)

Checkpoints.save = save_and_die
train_embeddings.main()
"""


def change(**embeddings: object) -> None:
    params = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    params["embeddings"] |= embeddings
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def written() -> dict[str, bytes]:
    files = [*paths.embedding("gst").iterdir(), paths.METRICS / "embeddings/gst.json"]
    return {str(file): file.read_bytes() for file in files}


def metrics() -> dict:
    return json.loads((paths.METRICS / "embeddings/gst.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_killed_training_goes_on(project: Path, capsys: pytest.CaptureFixture[str], epoch: int) -> None:
    """SIGKILL after epoch 1 of 3, and after the last one, before anything is written."""
    change(epochs=3)
    run_stage("train_embeddings", "gst")
    undisturbed = written()
    command = [sys.executable, "-c", DIE_AFTER, "gst", str(epoch)]
    # As DVC does before it runs a stage.
    for file in undisturbed:
        Path(file).unlink()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # with the same kernel of OpenBLAS as this process
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (paths.METRICS / "embeddings/gst.json").exists()
    capsys.readouterr()
    run_stage("train_embeddings", "gst")
    assert f"going on with an interrupted training: {epoch} of 3 epochs are done" in capsys.readouterr().out
    assert written() == undisturbed
    assert not list(Path(".lexveil/work").rglob("*.npy"))  # nothing is left of it


def test_what_is_said_of_the_training(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = metrics()
    about = {"source": "own", "scale": "none", "workers": 1, "byte_stable": True}
    assert about.items() <= found["training"].items()
    losses = found["training"]["loss_by_epoch"]
    assert len(losses) == 2 and losses[1] < losses[0] < 6 * np.log(2)
    assert about.items() <= json.loads((paths.embedding("gst") / "meta.json").read_text(encoding="utf-8")).items()
    capsys.readouterr()
    change(workers=2)
    run_stage("train_embeddings", "gst")
    assert "not byte-stable" in capsys.readouterr().out
    assert metrics()["training"]["byte_stable"] is False
    assert json.loads((paths.embedding("gst") / "meta.json").read_text(encoding="utf-8"))["byte_stable"] is False


def test_quality_is_written(built: Path) -> None:
    quality = metrics()["quality"]
    assert quality["analogies"]["questions"] == 19_544 and 0 < quality["analogies"]["questions_known"] < 19_544
    assert quality["similarity"]["wordsim353"]["pairs_known"] > 10
    assert -1 <= quality["similarity"]["wordsim353"]["spearman"] <= 1
    assert sum(band["n_tokens"] for band in quality["frequency"]["bands"]) == metrics()["n_tokens"]
    # Two epochs of a small text leave many vectors near where they started.
    assert 0 < quality["frequency"]["hardly_moved"] < 1
    tokens = set(load_embedding("gst").tokens)
    for length in ("unigram", "bigram", "trigram"):
        for one in [one for ones in quality["neighbours"][length].values() for one in ones]:
            assert {one["token"], *(near["token"] for near in one["neighbours"])} <= tokens


def test_unit_vectors_and_a_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lengths of the written space are 1, or what the list says; the figures of quality are those as trained."""
    before, raw = metrics(), np.array(load_embedding("gst").vectors)
    word = next(token for token in load_embedding("gst").tokens if token.isalpha())
    Path("list.csv").write_text(f"word,factor\n{word},0\nunheard-of,0\n", encoding="utf-8")
    named = f"list.csv@{sha256(Path('list.csv'))[:12]}"
    change(scale="unit", scale_list=named)
    capsys.readouterr()
    run_stage("train_embeddings", "gst")
    assert f"1 of 2 words of {named} are in the vocabulary" in capsys.readouterr().out
    after, unit = metrics(), np.array(load_embedding("gst").vectors)
    lengths = np.where([word in token.split("_") for token in load_embedding("gst").tokens], 0.0, 1.0)
    assert np.allclose(np.linalg.norm(unit, axis=1), lengths, atol=1e-6) and not lengths.all()
    assert np.allclose(unit * np.linalg.norm(raw, axis=1, keepdims=True), raw * lengths[:, None], atol=1e-6)
    assert after["norm_median"] == after["norm_largest"] == 1.0
    assert after["quality"] == before["quality"]
    meta = json.loads((paths.embedding("gst") / "meta.json").read_text(encoding="utf-8"))
    assert (meta["scale"], meta["scale_list"]) == ("unit", named)
