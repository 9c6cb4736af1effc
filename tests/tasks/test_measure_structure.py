"""The stage that measures how often one other word changes the structure of a text, and who reads
it."""

import shutil
from pathlib import Path

import pytest

from lexveil.base.errors import MissingArtifactError
from lexveil.core.accounting.budgets import Policy
from lexveil.io.artifacts.structure import load_structure
from tests.conftest import run_stage


def test_the_stage_measures_public_texts(built, monkeypatch, capsys):
    monkeypatch.setattr("tasks.measure_structure.TEXTS", 40)
    shutil.rmtree("artifacts/structure")
    assert load_structure("gst") is None
    run_stage("measure_structure")

    measured = load_structure("gst")
    words = load_structure("word")
    assert measured is not None and words is not None
    assert (measured.texts, measured.replacements, measured.segmentation) == (40, 400, "gst")
    change, source = measured.change("S3", Policy("perturb", "keep", "sample"))  # of params.yaml
    assert (
        change.number.share > 0.1 and source == "texts of the corpus that the model was trained on"
    )
    bound, source = measured.change("S3", Policy("sample", "keep", "sample"))
    assert bound.pattern.share > change.pattern.share and source.endswith(
        "; an upper bound for every policy"
    )
    # Words are cut without looking at the text; a stop word that is kept is another fate.
    words_change, _ = words.change("S1", Policy("keep", "keep", "sample"))
    assert words_change.number.share == 0 < words_change.pattern.share


def test_what_is_not_there_or_of_another_version(built):
    Path("artifacts/structure/mst.json").unlink()  # shared with other tests
    Path("artifacts/structure/mst.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MissingArtifactError, match="dvc repro measure_structure"):
        load_structure("mst")


def test_no_run_is_recorded_without_it(built):
    """If a run could be recorded without it, the record would depend on which of the two stages ran
    first."""
    shutil.rmtree("artifacts/structure")
    with pytest.raises(MissingArtifactError, match="measure_structure"):
        run_stage("privatize", "madlib", "S3", "20.0")
