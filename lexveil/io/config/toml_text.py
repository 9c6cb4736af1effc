"""The text of a lexveil.toml, with the meaning of each key above the key. `lexveil init` and
`lexveil init --upgrade` write it. A key without a value is shown by an example in a comment.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pydantic.fields import FieldInfo

from lexveil.base.parameters import Section, fields_of, section_of
from lexveil.io.config.configuration import Configuration
from lexveil.io.config.operation import NONE

WIDTH = 98  # width of a comment without the comment sign
HEAD = """
Settings of this machine, its releases and its schedules. No setting changes a result of the graph,
and a change of a setting makes no stage stale. The parameters on which results depend are in
params.yaml. A key that is left out has its default; docs/reference/parameters.md lists types and
ranges. A line that begins with # and no space is an example of a key without a value.
"""

Comments = Mapping[str, Sequence[str]]


def as_toml(configuration: Configuration, comments: Comments | None = None) -> str:
    """Return the text of a lexveil.toml.

    Args:
        comments: comment lines above a key or a section, which replace its meaning, by the name of
            the key, such as ``machine.workers``.
    """
    lines = _commented(HEAD)
    for key in fields_of(Configuration):
        lines += _table(key, getattr(configuration, key), comments or {})
    return "\n".join(lines) + "\n"


def can_be_lifted(field: FieldInfo) -> bool:
    """Return whether a setting has a default limit that the word "none" removes."""
    default = field.get_default(call_default_factory=True)
    return default is not None and type(None) in getattr(field.annotation, "__args__", ())


def _table(name: str, section: Section, comments: Comments) -> Iterator[str]:
    """Yield the lines of a section. The section's own keys precede its subsections, because TOML
    assigns every key after a header to the section of that header.
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
    """Return the line that sets a key, or a comment with an example if the key has no value."""
    key = name.rpartition(".")[2]
    if value is not None:
        return f"{key} = {written(value)}"
    if can_be_lifted(field):
        return f"{key} = {written(NONE)}"
    examples = field.examples or [""]
    return f"#{key} = {written(examples[0])}"


def written(value: object) -> str:
    """Return a value in the syntax of TOML."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{json.dumps(key)} = {written(one)}" for key, one in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    # A JSON string is a valid TOML string except for the character DEL, which TOML requires to be
    # escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _commented(text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), WIDTH, break_on_hyphens=False)
    return [f"# {line}" for line in lines]
