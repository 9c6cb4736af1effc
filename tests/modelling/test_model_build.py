"""`lexveil model build`: what it makes of a parameter file and of texts, as the how-to page of
languages has it."""

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from lexveil import ParameterError, RequestError, paths
from lexveil.artifacts.base_model import require_language
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.cli import main, project
from lexveil.modelling.build import load_recipe, params_of, split_by_source
from tests.conftest import ROOT, run_stage
from tests.german_texts import german_texts

PAGE = ROOT / "docs/how-to/languages.md"
STAGES = [f"{name} gst" for name in ("segment_corpus", "train_embeddings", "count_bigrams")]
STAGES = ["sample_corpus", "count_ngrams", "build_collocations", *STAGES, "package_model"]


def commands() -> list[list[str]]:
    return [
        shlex.split(line)[1:]
        for line in re.findall(r"^    (lexveil .+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    ]


def in_this_process(*_: Any, **__: Any) -> int:
    """Run the stages that package_model needs; how Prefect runs them has tests of its own."""
    for stage in STAGES:
        run_stage(*stage.split())
    return 0


def write(file: Path, texts: list[str]) -> None:
    file.write_text(
        "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts),
        encoding="utf-8",
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(project, "bring_up_to_date", in_this_process)
    monkeypatch.chdir(folder)
    return folder


def test_a_base_must_be_of_the_same_language(packaged: PackagedModel) -> None:
    require_language(packaged, "en-GB")
    require_language(None, "de")
    for language in ("de", "sv"):
        with pytest.raises(
            ParameterError, match=f"toy is of language en, and model.language is {language}; write"
        ):
            require_language(packaged, language)


def test_the_commands_of_the_page(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    write(here / "texte.jsonl", german_texts(300))
    write(here / "briefe.jsonl", german_texts(5, seed=2))
    asked = [command for command in commands() if "deutsch" in command]
    assert [command[:2] for command in asked[:2]] == [
        ["model", "build"],
        ["model", "show"],
    ] and len(asked) == 4
    said = []
    for command in asked:
        assert main.main(command) == 0
        monkeypatch.chdir(here)  # a build changes into its work folder
        said.append(capsys.readouterr())
    model = PackagedModel(tmp_path / "home/models/deutsch")
    assert model.card.language == "de" and "language: de" in said[1].out
    # Fixed expressions are collocations, words of closed classes are in none, and ordinals end no
    # sentence.
    collocations = {token for token in model.tokens if "_" in token}
    assert "vereinigten_republik" in collocations and "geht's" in model.tokens
    assert not [
        token
        for token in collocations
        if set(token.split("_")) & {"in", "der", "bei", "und", "mit"}
    ]
    assert model.lexicon("gst").language == "de"
    assert not [one.err for one in said if "looks like" in one.err]
    texts = [
        json.loads(line)["text"] for line in (here / "out.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(texts) == 5 and all(texts) and texts != german_texts(5, seed=2)
    record = json.loads((here / "out.jsonl.record.json").read_text("utf-8"))
    assert record["model"]["name"] == "deutsch" and "without_guarantee" not in record


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
            "machine decides no byte of the model; set it in lexveil.toml of the work folder",
        ),
        (
            "model: {license: CC0-1.0, min_document: 3}",
            r"model\.min_document; did you mean model\.min_documents",
        ),
    ],
)
def test_a_wrong_parameter_file_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "recipe.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ParameterError, match=says):
        params_of(load_recipe(tmp_path / "recipe.yaml", "legal", {}), TEMPLATE, "legal")


def test_sources_are_chosen_by_the_field_of_the_lines(tmp_path: Path) -> None:
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
        RequestError, match=r"b\.jsonl.*1: no JSON object with a field `source`"
    ) as error:
        split_by_source([tmp_path / "b.jsonl"], ["x"], tmp_path / "split")
    assert "secret" not in str(error.value)
