"""What `lexveil model build` is asked for: the card's words and the parameters of a work folder's project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from lexveil import paths
from lexveil.config import Params, parse_params
from lexveil.errors import ParameterError, RequestError, option
from lexveil.parameters import Section, validated

DEFAULT = Path(__file__).parent / "default.yaml"


class Recipe(Section):
    """A parameter file of a model."""

    model: dict[str, object] = Field(description="section `model` of params.yaml")
    parameters: dict[str, object] = Field(
        {}, description="other sections of params.yaml; a key that is not named keeps its value there"
    )


def load_recipe(file: Path | None, name: str, given: Mapping[str, str | None]) -> Recipe:
    """The recipe in ``file``; without one, that which ships for ``name``, or the default one.

    Args:
        given: keys of ``model`` that the command line says, which count before the file's; None where it does not.

    Raises:
        ParameterError: if the file is not a recipe, or of a model of another name.
        RequestError: if nobody says the licence.
    """
    shipped = paths.MODELS / f"{name}.yaml"
    source = file or (shipped if shipped.is_file() else DEFAULT)
    try:
        raw = yaml.safe_load(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{source}: there is no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ParameterError(f"{source}: not valid YAML in UTF-8") from None
    recipe = validated(Recipe, raw, str(source))
    if recipe.model.get("name", name) != name:
        raise ParameterError(f"{source}: model.name is {recipe.model['name']}, but {name} is asked for")
    model = recipe.model | {"name": name} | {key: value for key, value in given.items() if value is not None}
    if "license" not in model:
        raise RequestError(f"{option('license')} is missing: under which licence may the model be used?")
    return Recipe(model=model, parameters=recipe.parameters)


def params_of(recipe: Recipe, template: Mapping[str, Any], source: str) -> tuple[dict[str, object], Params]:
    """The params.yaml of the work folder, as plain values and checked: the template's, with those of the recipe.

    Raises:
        ParameterError: naming the key.
    """
    raw = {name: dict(value) if isinstance(value, Mapping) else value for name, value in template.items()}
    for name, value in recipe.parameters.items():
        raw[name] = {**raw.get(name, {}), **value} if isinstance(value, Mapping) else value
    raw["model"] = recipe.model
    return raw, parse_params(raw, source)
