"""The text of a lexveil.toml: every key with its meaning above it. `lexveil init` and `lexveil init
--upgrade` write it; a key without a value is shown by an example that is commented out.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pydantic.fields import FieldInfo

from lexveil.base.parameters import Section, fields_of, section_of
from lexveil.io.config.configuration import Configuration
from lexveil.io.config.operation import NONE

WIDTH = 98  # of a comment without its mark
HEAD = """
What this machine, its releases and its schedules are set to. None of it changes a result of the
graph, and a change makes no stage stale: params.yaml has what results depend on. Whatever is left
out has its default; docs/reference/parameters.md has types and ranges. Lines that begin with # and
no space are examples of keys that have no value.
"""

Comments = Mapping[str, Sequence[str]]


def as_toml(configuration: Configuration, comments: Comments | None = None) -> str:
    """Return the text of a lexveil.toml.

    Args:
        comments: lines that stand above a key or a section in place of its meaning, by its name,
            such as ``machine.workers``.
    """
    lines = _commented(HEAD)
    for key in fields_of(Configuration):
        lines += _table(key, getattr(configuration, key), comments or {})
    return "\n".join(lines) + "\n"


def can_be_lifted(field: FieldInfo) -> bool:
    """Whether a key has a default value that the word "none" switches off."""
    default = field.get_default(call_default_factory=True)
    return default is not None and type(None) in getattr(field.annotation, "__args__", ())


def _table(name: str, section: Section, comments: Comments) -> Iterator[str]:
    """Yield the lines of a section: first the section's own keys, then its subsections, because
    TOML assigns every key after a header to the section of that header.
    """
    yield ""
    yield from comments.get(name) or _commented((type(section).__doc__ or "").replace("``", ""))
    yield f"[{name}]"
    inner = []
    for key, field in fields_of(type(section)).items():
        value = getattr(section, key)
        path = f"{name}.{key}"
        if section_of(field) is not None:
            inner.append((path, value))
            continue
        yield from comments.get(path) or _commented(field.description or "")
        yield assignment(path, value, field)
    for path, value in inner:
        yield from _table(path, value, comments)


def assignment(name: str, value: object, field: FieldInfo) -> str:
    """Return the line of a key with its value; of a key without a value, an example."""
    key = name.rpartition(".")[2]
    if value is not None:
        return f"{key} = {written(value)}"
    if can_be_lifted(field):
        return f"{key} = {written(NONE)}"
    examples = field.examples or [""]
    return f"#{key} = {written(examples[0])}"


def written(value: object) -> str:
    """Return a value in TOML."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{json.dumps(key)} = {written(one)}" for key, one in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    # A JSON text is one of TOML but for the character DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _commented(text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), WIDTH, break_on_hyphens=False)
    return [f"# {line}" for line in lines]
