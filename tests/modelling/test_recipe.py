"""What `lexveil model build` makes of a parameter file and of texts."""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from lexveil import paths
from lexveil.errors import ParameterError, RequestError
from lexveil.modelling.build import load_recipe, params_of, split_by_source

TEMPLATE = yaml.safe_load((paths.TEMPLATE / paths.PARAMS).read_text(encoding="utf-8"))


def test_the_shipped_recipe_says_what_the_model_needs() -> None:
    raw, params = params_of(load_recipe(None, "en", {}), TEMPLATE, "en")
    assert params.embeddings.base == "none" and params.embeddings.workers == 1
    assert params.model.min_documents >= 30 and set(params.model.screens) == {"patterns", "slurs", "names"}
    assert "ami-icsi-meetings" not in params.model.sources and "cfpb-complaints" in params.model.sources
    assert raw["evaluation"] == TEMPLATE["evaluation"]  # what a recipe does not name stays


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("model: [", "not valid YAML"),
        ("model: {name: other}", r"model\.name is other, but legal is asked for"),
        ("model: {}\nparametres: {}", "unknown key parametres"),
        ("model: {license: CC0-1.0, min_document: 3}", r"model\.min_document; did you mean model\.min_documents"),
    ],
)
def test_a_wrong_parameter_file_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "recipe.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ParameterError, match=says):
        params_of(load_recipe(tmp_path / "recipe.yaml", "legal", {}), TEMPLATE, "legal")


def test_sources_are_chosen_by_the_field_of_the_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text, "source": source}) for text, source in ("ax", "by", "cx", "dz")]
    with gzip.open(tmp_path / "a.json.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    made = split_by_source([tmp_path / "a.json.gz"], ["x", "y"], tmp_path / "split")
    written = {name: path.read_text(encoding="utf-8").splitlines() for name, path in made.items()}
    texts = {name: [json.loads(line)["text"] for line in of_source] for name, of_source in written.items()}
    assert texts == {"x": ["a", "c"], "y": ["b"]}
    with pytest.raises(RequestError, match="no line of source w"):
        split_by_source([tmp_path / "a.json.gz"], ["x", "w"], tmp_path / "split")
    (tmp_path / "b.jsonl").write_text('{"text": "a secret"}\n', encoding="utf-8")
    with pytest.raises(RequestError, match=r"b\.jsonl.*1: no JSON object with a field `source`") as error:
        split_by_source([tmp_path / "b.jsonl"], ["x"], tmp_path / "split")
    assert "secret" not in str(error.value)
