"""A project of documents only: a base takes the place of a corpus, from the first stage to the
report's figures."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lexveil import Model, paths
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.artifacts.structure import load_structure
from lexveil.data.corpus import write_no_corpus
from lexveil.data.default import write_small_documents
from lexveil.levels import BaseEpsilon
from lexveil.report.data import ReportData
from lexveil.report.sections import corpus as corpus_section
from lexveil.runtime.tables import read_json, write_json
from tests.conftest import ROOT, SEGMENTATIONS, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow


@pytest.fixture
def documents_only(outside: Path, packaged: PackagedModel, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a corpus, as current folder, whose base is the user's model toy."""
    write_no_corpus(outside / "data/corpus")
    write_small_documents(outside / "data/documents")
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    change_params(
        embeddings={"base": f"toy@{packaged.hash[:12]}", "base_tokens": 500, "scale": "none"},
        grid={"segmentations": ["word", "gst", "mst"]},
    )
    return outside


def test_every_stage_copes_with_no_corpus(documents_only: Path, packaged: PackagedModel) -> None:
    for name in ("sample_corpus", "count_ngrams", "build_collocations", "train_language_model"):
        run_stage(name)
    for segmentation in SEGMENTATIONS:
        for name in (
            "segment_corpus",
            "train_embeddings",
            "build_neighborhoods",
            "count_bigrams",
            "measure_structure",
        ):
            run_stage(name, segmentation)
    space, brought = load_embedding("mst"), packaged.space("mst")
    assert list(space.tokens) == packaged.tokens[:500]
    assert np.array_equal(space.vectors, brought.vectors[:500]) and np.array_equal(
        space.counts, brought.counts[:500]
    )
    assert (
        load_lexicon("gst", Path(), "en").tokens
        == load_lexicon("mst", Path(), "en").tokens
        == packaged.tokens[:500]
    )
    made = read_json(paths.embedding("mst") / "meta.json", "train_embeddings")
    assert made["base"]["hash"] == packaged.hash and made["base"]["n_tokens"] == 500
    assert load_structure("gst") == packaged.structure("gst")
    run_stage("package_model")
    # what such a project can hand on is its base
    assert PackagedModel(paths.PACKAGED).hash == packaged.hash
    write_json({"success": True}, paths.CHECKS / "coverage.json")
    run_stage("privatize", "none", "none", "0.0")
    run_stage("train_attackers")
    run_stage("evaluate", "none", "none", "0.0")
    scores = read_json(paths.evaluation("none", "none", BaseEpsilon(0.0)), "evaluate_baseline")[
        "datasets"
    ]["reviews"]
    assert scores["perplexity"] == {
        "left_out": "there is no corpus that a language model could learn from"
    }
    assert scores["utility"]["left_out"] is None
    model = Model.load(Path(), "own")
    assert model.average_words() == packaged.card.average_words
    assert "embeddings/gst/meta.json" in model.hashes("S3")
    shown = corpus_section.view(ReportData(model.params))
    assert shown["has_corpus"] is False and shown["base"]["name"] == "toy"
