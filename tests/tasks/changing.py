"""Other settings for a stage or a release."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lexveil.base import paths
from lexveil.io.config import Configuration


def change_params(**sections: Mapping[str, Any]) -> None:
    """Change some settings of the current folder's params.yaml and lexveil.toml, by their sections;
    a link becomes a file."""
    mine = {name: values for name, values in sections.items() if name in Configuration.model_fields}
    if mine:
        configure(**mine)
    if mine == sections:
        return
    params = yaml.safe_load(paths.PARAMS.read_text(encoding="utf-8"))
    for name in sections.keys() - mine.keys():
        params[name] |= sections[name]
    paths.PARAMS.unlink()
    paths.PARAMS.write_text(yaml.safe_dump(params), encoding="utf-8")


def configure(root: Path = Path(), **sections: Mapping[str, Any]) -> None:
    """Change some settings of a folder's lexveil.toml, by their sections, valid or not; of a
    section in a section those that are given. None takes a key out, and lifts a limit of a gate."""
    file = root / paths.CONFIGURATION
    raw = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, values in sections.items():
        section = raw.setdefault(name, {})
        for key, value in values.items():
            inner = isinstance(value, Mapping) and isinstance(section.get(key), Mapping)
            section[key] = section[key] | value if inner else value
    file.unlink(missing_ok=True)
    lines = [line for name, values in raw.items() for line in _table(name, values)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{name}]"
    for key, value in values.items():
        if value is None and name.endswith("gate"):
            yield f'{key} = "none"'
        elif value is not None and not isinstance(value, Mapping):
            yield f"{key} = {json.dumps(value)}"
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _table(f"{name}.{key}", value)
