"""A project of documents only: a base takes the place of a corpus, from the first stage to the
report's figures."""

import os
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from lexveil import Model
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon
from lexveil.base.runtime.tables import read_json, write_json
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.artifacts.structure import load_structure
from lexveil.lab.data.corpus import write_no_corpus
from lexveil.lab.data.default import write_small_documents
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.sections import corpus as corpus_section
from tests.conftest import ROOT, SEGMENTATIONS, estimate_quickly, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow

OF_A_SEGMENTATION = (
    "segment_corpus",
    "train_embeddings",
    "build_neighborhoods",
    "count_bigrams",
    "measure_structure",
)


@pytest.fixture(scope="module")
def run_without_corpus(packaged, tmp_path_factory):
    """A project without a corpus, whose base is the user's model toy, in which every stage has
    run.
    """
    folder = tmp_path_factory.mktemp("documents-only") / "project"
    home = folder.with_name("home")
    folder.mkdir()
    (home / "models").mkdir(parents=True)
    (home / "models/toy").symlink_to(packaged.folder)
    write_no_corpus(folder / "data/corpus")
    write_small_documents(folder / "data/documents")
    shutil.copy(ROOT / "params.yaml", folder)
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        estimate_quickly(patch, home)
        patch.setenv("LEXVEIL_HOME", str(home))
        patch.chdir(folder)
        change_params(
            embeddings={
                "base": f"toy@{packaged.hash[:12]}",
                "base_tokens": 500,
                "scale": "none",
            },
            grid={"segmentations": ["word", "gst", "mst"]},
        )
        run_all_stages()
    return folder


def run_all_stages():
    """Run the stages from the first to the evaluation of the clean baseline."""
    for name in ("sample_corpus", "count_ngrams", "build_collocations", "train_language_model"):
        run_stage(name)
    for segmentation in SEGMENTATIONS:
        for name in OF_A_SEGMENTATION:
            run_stage(name, segmentation)
    run_stage("package_model")
    write_json({"success": True}, paths.CHECKS / "coverage.json")
    run_stage("privatize", "none", "none", "0.0")
    run_stage("train_attackers")
    run_stage("evaluate", "none", "none", "0.0")


@pytest.fixture
def documents_only(run_without_corpus, monkeypatch):
    """The project as current folder; only for reading."""
    monkeypatch.setenv("LEXVEIL_HOME", str(run_without_corpus.with_name("home")))
    monkeypatch.chdir(run_without_corpus)
    return run_without_corpus


@pytest.mark.usefixtures("documents_only")
def test_without_a_corpus_words_and_vectors_are_those_of_the_base(packaged):
    space = load_embedding("mst")
    brought = packaged.space("mst")
    assert [*space.tokens] == packaged.tokens[:500]
    assert np.array_equal(space.vectors, brought.vectors[:500])
    assert np.array_equal(space.counts, brought.counts[:500])
    made = read_json(paths.embedding("mst") / "meta.json", "train_embeddings")
    assert (made["base"]["hash"], made["base"]["n_tokens"]) == (packaged.hash, 500)


@pytest.mark.usefixtures("documents_only")
@pytest.mark.parametrize("segmentation", ["gst", "mst"])
def test_without_a_corpus_collocations_are_those_of_the_base(packaged, segmentation):
    assert load_lexicon(segmentation, Path(), "en").tokens == packaged.tokens[:500]


@pytest.mark.usefixtures("documents_only")
def test_without_a_corpus_what_was_measured_is_that_of_the_base(packaged):
    assert load_structure("gst") == packaged.structure("gst")
    assert Model.load(Path(), "own").average_words() == packaged.card.average_words


@pytest.mark.usefixtures("documents_only")
def test_a_project_without_a_corpus_can_hand_on_its_base(packaged):
    assert PackagedModel(paths.PACKAGED).hash == packaged.hash


@pytest.mark.usefixtures("documents_only")
def test_without_a_corpus_there_is_no_perplexity_and_all_else_is_scored():
    evaluation = read_json(paths.evaluation("none", "none", BaseEpsilon(0.0)), "evaluate_baseline")
    scores = evaluation["datasets"]["reviews"]
    without = "there is no corpus on which a language model could be trained"
    assert scores["perplexity"] == {"left_out": without}
    assert scores["utility"]["left_out"] is None


@pytest.mark.usefixtures("documents_only")
def test_a_model_without_a_corpus_names_its_files():
    assert "embeddings/gst/meta.json" in Model.load(Path(), "own").hashes("S3")


@pytest.mark.usefixtures("documents_only")
def test_the_report_without_a_corpus_names_the_base():
    shown = corpus_section.view(ReportData(Model.load(Path(), "own").params))
    assert shown["has_corpus"] is False
    assert shown["base"]["name"] == "toy"
