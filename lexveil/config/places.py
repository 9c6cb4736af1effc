"""Places of keys in the two files of a project, for a message about a key that stands elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from lexveil import paths
from lexveil.parameters import Section, fields_of, section_of


def places_of(key: str) -> list[str]:
    """Return where a key stands in params.yaml and in lexveil.toml: "lexveil.toml [machine]"."""
    from lexveil.config.configuration import Configuration
    from lexveil.config.experiment import Params

    found = [
        f"{paths.PARAMS}, {section}" if section else str(paths.PARAMS)
        for section in _sections_with(key, Params)
    ]
    found += [
        f"{paths.CONFIGURATION} [{section}]" if section else str(paths.CONFIGURATION)
        for section in _sections_with(key, Configuration)
    ]
    return found


def _sections_with(key: str, section: type[Section], name: str = "") -> Iterator[str]:
    fields = fields_of(section)
    if key in fields:
        yield name
    for inner, field in fields.items():
        if (kind := section_of(field)) is not None:
            yield from _sections_with(key, kind, f"{name}.{inner}" if name else inner)
