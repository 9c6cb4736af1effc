"""`lexveil model build`: what it makes of a parameter file and of texts, as the how-to page of
languages has it."""

import gzip
import io
import json
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from lexveil import ParameterError, RequestError
from lexveil.base import paths
from lexveil.faces.cli import main, project
from lexveil.io.artifacts.base_model import require_language
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.lab.modelling.build import load_recipe, params_of, split_by_source
from tests.conftest import ROOT, estimate_quickly, run_stage
from tests.german_texts import german_texts

PAGE = ROOT / "docs/how-to/languages.md"
STAGES = [f"{name} gst" for name in ("segment_corpus", "train_embeddings", "count_bigrams")]
STAGES = ["sample_corpus", "count_ngrams", "build_collocations", *STAGES, "package_model"]


COMMANDS = re.findall(r"^    lexveil (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
OF_THE_MODEL = [shlex.split(line) for line in COMMANDS if "deutsch" in line]


def in_this_process(*_, **__):
    """Run the stages that package_model needs; how Prefect runs them has tests of its own."""
    for stage in STAGES:
        run_stage(*stage.split())
    return 0


def write(file, texts):
    file.write_text(
        "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts),
        encoding="utf-8",
    )


def test_a_base_must_be_of_the_same_language(packaged):
    require_language(packaged, "en-GB")
    require_language(None, "de")
    for language in ("de", "sv"):
        with pytest.raises(
            ParameterError, match=f"toy is en, but model.language is {language}; write"
        ):
            require_language(packaged, language)


@dataclass(frozen=True)
class Built:
    """Output of the commands of the page about the model deutsch, and the model that they made."""

    said: list[Any]
    folder: Path
    model: PackagedModel


@pytest.fixture(scope="module")
def built_by_the_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    home = tmp_path_factory.mktemp("home")
    write(folder / "texte.jsonl", german_texts(300))
    write(folder / "briefe.jsonl", german_texts(5, seed=2))
    said = []
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ):
        estimate_quickly(patch, home)
        patch.setenv("LEXVEIL_HOME", str(home))
        patch.setattr(project, "bring_up_to_date", in_this_process)
        for asked in OF_THE_MODEL:
            patch.chdir(folder)  # a build changes into its work folder
            out = io.StringIO()
            # Of so few made-up texts a reader names 5 % of the rare words without any output.
            reachable = ["light" if word == "balanced" else word for word in asked]
            with redirect_stdout(out), redirect_stderr(out):
                assert main.main(reachable) == 0
            said.append(out.getvalue())
    return Built(said, folder, PackagedModel(home / "models/deutsch"))


def test_the_page_builds_shows_and_uses_a_model():
    assert [asked[:2] for asked in OF_THE_MODEL[:2]] == [["model", "build"], ["model", "show"]]
    assert len(OF_THE_MODEL) == 4


def test_the_model_of_the_page_has_its_language(built_by_the_page):
    assert built_by_the_page.model.card.language == "de"
    assert built_by_the_page.model.lexicon("gst").language == "de"
    assert "language: de" in built_by_the_page.said[1]
    assert not [said for said in built_by_the_page.said if "looks like" in said]


def test_the_model_of_the_page_cuts_texts_by_the_rules_of_its_language(
    built_by_the_page,
):
    """Fixed expressions are collocations, words of closed classes are in none, and ordinals end no
    sentence.
    """
    tokens = {*built_by_the_page.model.tokens}
    assert {"vereinigten_republik", "geht's"} <= tokens
    in_collocations = {word for token in tokens if "_" in token for word in token.split("_")}
    assert not in_collocations & {"in", "der", "bei", "und", "mit"}


def test_the_page_rewrites_texts_with_a_guarantee(built_by_the_page):
    lines = (built_by_the_page.folder / "out.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) == 5
    assert all(texts)
    assert texts != german_texts(5, seed=2)
    record = json.loads((built_by_the_page.folder / "out.jsonl.record.json").read_text("utf-8"))
    assert record["model"]["name"] == "deutsch"
    assert "without_guarantee" not in record


TEMPLATE = yaml.safe_load((paths.TEMPLATE / paths.PARAMS).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("model: [", "not valid YAML"),
        ("model: 2026-02-30", "not valid YAML"),
        ("model: {name: other}", r"model\.name is other, but legal was requested"),
        ("model: {}\nparametres: {}", "unknown key parametres"),
        (
            "model: {license: CC0-1.0}\nparameters: {machine: {workers: 4}}",
            "machine does not change the model; set it in lexveil.toml of the work folder",
        ),
        (
            "model: {license: CC0-1.0, min_document: 3}",
            r"model\.min_document; did you mean model\.min_documents",
        ),
    ],
)
def test_a_wrong_parameter_file_is_refused(tmp_path, content, says):
    (tmp_path / "recipe.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ParameterError, match=says):
        params_of(load_recipe(tmp_path / "recipe.yaml", "legal", {}), TEMPLATE, "legal")


def test_sources_are_chosen_by_the_field_of_the_lines(tmp_path):
    lines = [
        json.dumps({"text": text, "source": source}) for text, source in ("ax", "by", "cx", "dz")
    ]
    with gzip.open(tmp_path / "a.json.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    made = split_by_source([tmp_path / "a.json.gz"], ["x", "y"], tmp_path / "split")
    written = {name: path.read_text(encoding="utf-8").splitlines() for name, path in made.items()}
    texts = {
        name: [json.loads(line)["text"] for line in of_source]
        for name, of_source in written.items()
    }
    assert texts == {"x": ["a", "c"], "y": ["b"]}
    with pytest.raises(RequestError, match="no line of source w"):
        split_by_source([tmp_path / "a.json.gz"], ["x", "w"], tmp_path / "split")
    (tmp_path / "b.jsonl").write_text('{"text": "a secret"}\n', encoding="utf-8")
    with pytest.raises(
        RequestError, match=r"b\.jsonl.*1: is not a JSON object with a field `source`"
    ) as error:
        split_by_source([tmp_path / "b.jsonl"], ["x"], tmp_path / "split")
    assert "secret" not in str(error.value)
