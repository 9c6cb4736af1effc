"""Keys of params.yaml that dvc.yaml names cannot be left out, although they have a default."""

from pathlib import Path

import pytest
import yaml

from lexveil import ParameterError
from lexveil.io.execution.named_parameters import require_named_keys

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("grid.epsilons", r'\["r0\.2", "r0\.5", 10\.0\]'),  # in a matrix of stages
        ("grid.segmentations", r'\["word", "gst"\]'),
        ("policy.stopwords", '"paper"'),  # among the parameters of a stage
        ("sentences.size", "100000"),
    ],
)
def test_a_key_that_the_graph_names_is_required(tmp_path, key, default):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    section, _, name = key.partition(".")
    del raw[section][name]
    file = tmp_path / "params.yaml"
    file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    message = rf"params\.yaml: {key} is missing, but .*dvc\.yaml names it.* default is {default}$"
    with pytest.raises(ParameterError, match=message):
        require_named_keys(file, ROOT / "dvc.yaml")


def test_a_key_of_a_section_that_the_graph_names_as_a_whole_may_be_left_out(tmp_path):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    del raw["embeddings"]["window"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    require_named_keys(tmp_path / "params.yaml", ROOT / "dvc.yaml")


def test_the_committed_file_has_every_key_that_the_graph_names():
    require_named_keys(ROOT / "params.yaml", ROOT / "dvc.yaml")
