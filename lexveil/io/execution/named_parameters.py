"""Check for the keys of params.yaml that dvc.yaml names. DVC does not run a stage if such a key is
missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from lexveil.base import paths
from lexveil.base.errors import ParameterError
from lexveil.base.runtime.dvc_graph import DVC_YAML
from lexveil.io.config import LOADER, Params, parse_params


def require_named_keys(file: Path, graph: Path = DVC_YAML) -> None:
    """Check that a params.yaml has every key that a dvc.yaml names.

    Raises:
        ParameterError: if a key is missing; the message names the first such key and its default.
    """
    params = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    text = graph.read_text(encoding="utf-8")
    for key in _named_keys(text):
        if not _has(params, key):
            raise ParameterError(
                f"{file}: {key} is missing, but {graph} names it, so it cannot be omitted; "
                f"its default is {_default(key)}"
            )


def _named_keys(text: str) -> Iterator[str]:
    for stage in yaml.load(text, Loader=LOADER)["stages"].values():
        for entry in stage.get("do", stage).get("params", ()):
            yield from (entry.get(paths.PARAMS.name) or ()) if isinstance(entry, dict) else (entry,)
    yield from (
        key
        for key in re.findall(r"\$\{([\w.]+)\}", text)
        if key.partition(".")[0] in Params.model_fields
    )


def _has(params: Any, key: str) -> bool:
    value = params
    for step in key.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True


def _default(key: str) -> str:
    """Return the default of a key in the syntax of params.yaml. The syntax is JSON, which YAML
    includes.
    """
    value = reduce(getattr, key.split("."), parse_params({"seed": 0}))
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return value.parameter
