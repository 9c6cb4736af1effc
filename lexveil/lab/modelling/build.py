"""Implementation of `lexveil model build`, which makes a packaged model from texts: it turns a work
folder into a project with these texts and runs the project's pipeline.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import yaml
from pydantic import Field

from lexveil.base import paths
from lexveil.base.errors import ParameterError, RequestError, option
from lexveil.base.parameters import Section, validated
from lexveil.base.runtime import new_project
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import atomic_directory, atomic_file, write_json
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.packaged_model import CARD, ModelCard
from lexveil.io.config import Params, parse_params
from lexveil.io.config.experiment import yaml_problem
from lexveil.io.config.moved import moved_keys
from lexveil.io.formats.compression import open_bytes
from lexveil.io.formats.input_files import find_sources
from lexveil.io.formats.messages import shown
from lexveil.lab.data import data_store
from lexveil.lab.data.model_verification import verify_folder

STAGE = "package_model"
# file with the hashes of the texts behind data/, so that a second call resumes
TAKEN = Path(".lexveil/model-corpus.json")
SPLIT = Path(".lexveil/model-sources")
DEFAULT = Path(__file__).parent / "default.yaml"


def prepare_project(
    work: Path, recipe: Recipe, corpus: Sequence[Path], say: Callable[[str], None]
) -> None:
    """Turn the folder ``work`` into a Lexveil project with the given texts and parameters. Existing
    project data stay unchanged if they were made from the same texts.

    Raises:
        RequestError: if a text or a parameter is not valid; the message names the file and line, or
            the parameter.
    """
    template = yaml.safe_load((paths.TEMPLATE / paths.PARAMS).read_text(encoding="utf-8"))
    raw, params = params_of(recipe, template, "the parameters of the model")
    files = find_sources(corpus)
    if not (work / "dvc.yaml").is_file():
        work.parent.mkdir(parents=True, exist_ok=True)
        new_project.create(work)
    with atomic_file(work / paths.PARAMS) as partial:
        partial.write_text(
            yaml.safe_dump(raw, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
    sources = sorted(params.model.sources)
    wanted = {
        "files": {str(one.path.resolve()): sha256(one.path) for one in files},
        "sources": sources,
    }
    taken = work / TAKEN
    if taken.is_file() and json.loads(taken.read_text(encoding="utf-8")) == wanted:
        say("the texts are the same as in the last call")
        return
    try:
        data_store.use(data_store.DataRequest(_by_source(corpus, sources, work / SPLIT)), work)
    finally:
        shutil.rmtree(work / SPLIT, ignore_errors=True)
    write_json(wanted, taken)


def _by_source(corpus: Sequence[Path], sources: Sequence[str], split: Path) -> Mapping[str, Path]:
    """Return the corpus files of each source. If the recipe names sources, these are the lines that
    name the source; otherwise each given path is a source, with a name made from the file name.
    """
    if sources:
        return split_by_source(corpus, sources, split)
    files: dict[str, Path] = {}
    for number, path in enumerate(corpus, 1):
        stem = (
            re.sub(r"[^a-z0-9_-]+", "-", path.resolve().name.split(".")[0].lower()).strip("-_")
            or "corpus"
        )
        files[f"{stem}-{number}" if stem in files else stem] = path.resolve()
    return files


def split_by_source(corpus: Sequence[Path], sources: Sequence[str], split: Path) -> dict[str, Path]:
    """Split JSON Lines files by the source that each line names: write one file for each of
    ``sources`` into the folder ``split``.

    Raises:
        RequestError: if a file has another form, a line names no source, or a source has no line.
    """
    split.mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_files:
        out: dict[str, IO[bytes]] = {}
        for source in find_sources(corpus):
            with open_bytes(source.path, source.compression) as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        name = json.loads(line)["source"]
                    except (ValueError, KeyError, TypeError):
                        raise RequestError(
                            f"{source.location(number)}: is not a JSON object with a field `source`"
                        ) from None
                    if name not in sources:
                        continue
                    if name not in out:
                        out[name] = open_files.enter_context((split / f"{name}.jsonl").open("wb"))
                    out[name].write(line if line.endswith(b"\n") else line + b"\n")
    if missing := sorted(set(sources) - set(out)):
        raise RequestError(
            f"the corpus has no line of source {', '.join(missing)}, but the parameter file "
            "names it"
        )
    return {name: split / f"{name}.jsonl" for name in sorted(out)}


def deliver(work: Path, out: Path) -> ModelCard:
    """Verify the packaged model in the work folder, and copy the model to ``out``."""
    card = verify_folder(work / paths.PACKAGED)
    with atomic_directory(out) as partial:
        shutil.copytree(work / paths.PACKAGED, partial, dirs_exist_ok=True)
    return card


def check_target(out: Path, name: str, *, chosen: bool) -> None:
    """Raise an error if the target folder exists and is not a model, or if the model name is
    reserved.

    Args:
        chosen: whether the caller chose the folder; the model may then have the name of a model
            that ships.

    Raises:
        RequestError: if the folder or the name is refused.
    """
    if name == OWN:
        raise RequestError(f"{OWN} always names the model of the project; choose another name")
    if not chosen and (paths.MODELS / name).is_dir():
        raise RequestError(f"{name} ships with Lexveil; choose another name, or {option('out')}")
    if out.exists() and not (out / CARD).is_file():
        raise RequestError(
            f"{shown(out)}: exists and is not a model; name another folder with {option('out')}"
        )


class Recipe(Section):
    """Recipe of a packaged model: the content of the parameter file from which the model is
    built.
    """

    model: dict[str, object] = Field(description="section `model` of params.yaml")
    parameters: dict[str, object] = Field(
        {},
        description=(
            "other sections of params.yaml; a key that is not named keeps its value in params.yaml"
        ),
    )


def load_recipe(file: Path | None, name: str, changes: Mapping[str, str | None]) -> Recipe:
    """Load the model recipe in ``file``; without a file, load the recipe that ships for ``name``,
    or the default recipe.

    Args:
        changes: values of ``model`` from the command line, which override the file's; None for keys
            that the command line does not set.

    Raises:
        ParameterError: if the file is not a recipe, or is the recipe of a model of another name.
        RequestError: if neither the file nor the command line names the licence.
    """
    shipped = paths.MODELS / f"{name}.yaml"
    source = file or (shipped if shipped.is_file() else DEFAULT)
    try:
        raw = yaml.safe_load(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{source}: no such file") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ParameterError(f"{source}{yaml_problem(error)}") from None
    recipe = validated(Recipe, raw, str(source))
    if recipe.model.get("name", name) != name:
        raise ParameterError(
            f"{source}: model.name is {recipe.model['name']}, but {name} was requested"
        )
    model = (
        recipe.model
        | {"name": name}
        | {key: value for key, value in changes.items() if value is not None}
    )
    if "license" not in model:
        raise RequestError(
            f"{option('license')} is missing: give the licence under which the model may be used"
        )
    return Recipe(model=model, parameters=recipe.parameters)


def params_of(
    recipe: Recipe, template: Mapping[str, Any], source: str
) -> tuple[dict[str, object], Params]:
    """Return the params.yaml of the work folder, as plain values and as validated parameters: the
    template with the values of the recipe.

    Raises:
        ParameterError: if a value is not valid; the message names its key.
    """
    if moved := moved_keys(recipe.parameters):
        raise ParameterError(
            f"{source}: {', '.join(moved)} does not change the model; set it in "
            f"{paths.CONFIGURATION} of the work folder"
        )
    raw = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in template.items()
    }
    for name, value in recipe.parameters.items():
        raw[name] = {**raw.get(name, {}), **value} if isinstance(value, Mapping) else value
    raw["model"] = recipe.model
    return raw, parse_params(raw, source)
