"""Upgrade of a project by `lexveil init --upgrade`, which moves keys of lexveil.toml that are still
in params.yaml.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo

from lexveil.base import paths
from lexveil.base.errors import ParameterError, RequestError
from lexveil.base.parameters import Section, fields_of, section_of
from lexveil.base.runtime.new_project import FOLDERS
from lexveil.base.runtime.tables import atomic_file
from lexveil.io.config import (
    LOADER,
    Configuration,
    load_configuration,
    parse_configuration,
    parse_params,
)
from lexveil.io.config.experiment import parse_yaml, yaml_problem
from lexveil.io.config.moved import DETECTION, DETECTION_KEYS, POLICY, SECTIONS, moved_keys, split
from lexveil.io.config.operation import NONE
from lexveil.io.config.toml_text import Comments, as_toml, assignment, can_be_lifted, written


def upgrade(folder: Path) -> list[str]:
    """Move the keys in the params.yaml of ``folder`` that belong into lexveil.toml, with their
    values and comments. Return the names of the moved keys, which is an empty list if there are
    none.

    The file lexveil.toml is complete before params.yaml changes, so that a killed upgrade can be
    repeated.

    Raises:
        ParameterError: if params.yaml or lexveil.toml cannot be read, or a value is not valid.
        RequestError: if lexveil.toml exists and has other values for the moved keys.
    """
    file = folder / paths.PARAMS
    target = folder / paths.CONFIGURATION
    try:
        text = file.read_text(encoding="utf-8")
        raw = parse_yaml(text, str(file))
        moved = moved_keys(raw)
    except FileNotFoundError:
        raise RequestError(f"{file}: there is no such file; name the folder of a project") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ParameterError(f"{file}{yaml_problem(error)}") from None
    if not moved:
        return []
    assert isinstance(raw, dict)
    remains, sections = split(raw)
    parse_params(remains, str(file))
    configuration = parse_configuration(sections, str(file))
    comments = _comments_of(text)
    if not target.exists():
        _write(target, _checked(as_toml(configuration, comments), configuration), file)
    elif (merged := _merged(target, configuration, text, comments)) is not None:
        _write(target, merged, target)
    _write(file, _without_moved(text, remains), file)
    return moved


def other_files(folder: Path) -> list[str]:
    """Return the project's stages, flows and queries whose text differs from the text of this
    version of Lexveil.
    """
    ours = [file for name in FOLDERS for file in (paths.TEMPLATE / name).rglob("*")]
    names = [file.relative_to(paths.TEMPLATE) for file in ours if file.suffix in (".py", ".sql")]
    return [str(name) for name in sorted(names) if _differs(folder / name, paths.TEMPLATE / name)]


def _differs(file: Path, ours: Path) -> bool:
    return not file.is_file() or file.read_bytes() != ours.read_bytes()


def _merged(target: Path, moved: Configuration, params: str, comments: Comments) -> str | None:
    """Return the text of a lexveil.toml, completed by the values that a params.yaml has for keys of
    lexveil.toml. The result is None if the lexveil.toml already has these values. A value that is
    not the default replaces the default.

    Args:
        params: the text of params.yaml.
        comments: the comments of params.yaml on keys that move, by the names of the keys.

    Raises:
        RequestError: if the two files have different values for a key, and neither value is the
            default.
    """
    there = _leaves(load_configuration(target))
    defaults = _leaves(Configuration())
    taken: dict[str, tuple[object, FieldInfo]] = {}
    contradictions = []
    text = target.read_text(encoding="utf-8")
    for name, (value, field) in _leaves(moved).items():
        if value in (there[name][0], defaults[name][0]):
            continue
        if there[name][0] == defaults[name][0]:
            taken[name] = (value, field)
            continue
        contradictions.append(
            f"{name} is {_shown(there[name][0])} in {target}{_toml_line(text, name)} and "
            f"{_shown(value)} in {paths.PARAMS}{_yaml_line(params, name)}"
        )
    if contradictions:
        raise RequestError(
            f"nothing was changed, because {'; '.join(contradictions)}; write the same "
            "value into both files, or remove the key from one"
        )
    if not taken:
        return None
    merged = parse_configuration(_nested(there | taken), f"{target} with {paths.PARAMS}")
    for name, (value, field) in taken.items():
        text = _with_value(text, name, [*comments.get(name, ()), assignment(name, value, field)])
    return text if _has(text, merged) else _checked(as_toml(merged, comments), merged)


def _has(text: str, configuration: Configuration) -> bool:
    """Return whether the text of a lexveil.toml gives these settings. The text may have a section
    in a form into which lines cannot be inserted.
    """
    try:
        return parse_configuration(tomllib.loads(text)) == configuration
    except (tomllib.TOMLDecodeError, ParameterError):
        return False


def _nested(leaves: dict[str, tuple[object, FieldInfo]]) -> dict[str, Any]:
    """Convert values by their full names, such as ``machine.workers``, to nested mappings by
    section.
    """
    nested: dict[str, Any] = {}
    for name, (value, _) in leaves.items():
        *sections, key = name.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return nested


def _leaves(section: Section, prefix: str = "") -> dict[str, tuple[object, FieldInfo]]:
    """Return the values of a section and of its subsections, with their fields, by the full names
    of the keys, such as ``machine.workers``.
    """
    found: dict[str, tuple[object, FieldInfo]] = {}
    for key, field in fields_of(type(section)).items():
        value = getattr(section, key)
        if isinstance(value, Section):
            found |= _leaves(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = (value, field)
    return found


def _shown(value: object) -> str:
    """Return a value for a message. An address is hidden, because it may contain a secret."""
    if value is None:
        return "left out"
    return "an address" if "://" in str(value) else written(value)


def _place(lines: Sequence[str], name: str) -> tuple[int | None, int | None]:
    """Return the line numbers of a section and of a key in a lexveil.toml, counted from 0. If the
    key has no value, the second number is the line of its example.

    Args:
        name: the full name of the key, such as ``machine.workers``.
    """
    section, _, key = name.rpartition(".")
    head = next((i for i, line in enumerate(lines) if line.strip() == f"[{section}]"), None)
    if head is None:
        return None, None
    later = range(head + 1, len(lines))
    end = next((i for i in later if lines[i].startswith("[")), len(lines))
    for mark in ("", "#"):
        for i in range(head + 1, end):
            if re.match(rf"{mark}{key}\s*=", lines[i]):
                return head, i
    return head, None


def _with_value(text: str, name: str, entry: Sequence[str]) -> str:
    """Return the text of a lexveil.toml, with the lines of one key replaced."""
    lines = text.splitlines()
    head, place = _place(lines, name)
    if head is None:
        return "\n".join([*lines, "", f"[{name.rpartition('.')[0]}]", *entry]) + "\n"
    after = head + 1 if place is None else place
    lines[after : after + (place is not None)] = entry
    return "\n".join(lines) + "\n"


def _toml_line(text: str, name: str) -> str:
    place = _place(text.splitlines(), name)[1]
    return "" if place is None else f", line {place + 1}"


def _yaml_line(text: str, name: str) -> str:
    lines = text.splitlines()
    for entry in _entries(lines, yaml.compose(text, Loader=yaml.SafeLoader), len(lines)):
        if _renamed(entry.name) == name:
            return f", line {entry.line + 1}"
    return ""


def _checked(text: str, configuration: Configuration) -> str:
    """Check that the text of a lexveil.toml gives these settings, and return the text."""
    assert parse_configuration(tomllib.loads(text)) == configuration
    return text


def _write(path: Path, text: str, like: Path) -> None:
    """Write a file with the permissions of another file, because it can name databases."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
        shutil.copymode(like, partial)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A key of a YAML file with the lines that belong to it: the comments directly above the key,
    its value, and everything up to the next key.

    Attributes:
        name: the full name of the key, such as ``machine.workers``.
        begin: number of its first line, which may be a comment.
        line: number of the line with the key.
        end: number of the line after its last line.
        value: the YAML node of its value.
    """

    name: str
    begin: int
    line: int
    end: int
    value: yaml.Node


def _entries(
    lines: Sequence[str], mapping: yaml.Node | None, end: int, prefix: str = ""
) -> Iterator[_Entry]:
    """Yield the keys of a YAML mapping with their lines. If the value of a key is a mapping, the
    keys of that mapping follow.
    """
    if not isinstance(mapping, yaml.MappingNode) or not _is_block(mapping):
        return
    keys = [(key, value) for key, value in mapping.value if isinstance(key, yaml.ScalarNode)]
    begins = [_first_line(lines, key.start_mark) for key, _ in keys]
    for (key, value), begin, after in zip(keys, begins, [*begins[1:], end], strict=True):
        name = f"{prefix}{key.value}"
        yield _Entry(name, begin, key.start_mark.line, after, value)
        yield from _entries(lines, value, after, f"{name}.")


def _is_block(value: yaml.Node) -> bool:
    """Return whether the value of a key is a mapping or a list on the lines below the key."""
    return isinstance(value, yaml.CollectionNode) and not value.flow_style


def _first_line(lines: Sequence[str], mark: yaml.Mark) -> int:
    """Return the line of a key, or the first line of the comments directly above the key. A comment
    that is indented further continues the comment of the previous key.
    """
    line: int = mark.line
    while line > 0 and re.match(rf" {{0,{mark.column}}}#", lines[line - 1]):
        line -= 1
    return line


def _renamed(name: str) -> str | None:
    """Return the name that a key of params.yaml has in lexveil.toml. The result is None for a key
    that stays in params.yaml.
    """
    section, _, rest = name.partition(".")
    if section in SECTIONS:
        return name
    if section == POLICY and rest.split(".")[0] in DETECTION_KEYS:
        return f"{DETECTION}.{rest}"
    return None


def _comments_of(text: str) -> dict[str, list[str]]:
    """Return the comments of a params.yaml on the keys that move to lexveil.toml, by the new names
    of the keys.
    """
    lines = text.splitlines()
    comments = {}
    entries = list(_entries(lines, yaml.compose(text, Loader=yaml.SafeLoader), len(lines)))
    # The lines of the keys in a section belong to these keys.
    following = [*(entry.begin for entry in entries[1:]), len(lines)]
    for entry, after in zip(entries, following, strict=False):
        name = _renamed(entry.name)
        found = list(_comment_lines(entry, lines, min(entry.end, after)))
        if name is not None and found:
            nothing = f'"{NONE}"' if _can_be_lifted(name) else "left out"
            comments[name] = [re.sub(r"\bnull\b", nothing, line) for line in found]
    return comments


def _comment_lines(entry: _Entry, lines: Sequence[str], end: int) -> Iterator[str]:
    is_inline = not _is_block(entry.value)
    for number in range(entry.begin, end):
        line = lines[number]
        if number == entry.line and is_inline and entry.value.end_mark.line == number:
            line = line[entry.value.end_mark.column :]
        elif number == entry.line:
            line = line.partition(":")[2]
        if found := re.match(r"\s*#\s?(.*)", line):
            yield f"# {found[1]}".rstrip()


def _can_be_lifted(name: str) -> bool:
    *sections, key = name.split(".")
    section: Any = Configuration
    for step in sections:
        field = fields_of(section).get(step)
        section = field and section_of(field)
        if section is None:
            return False
    field = fields_of(section).get(key)
    return field is not None and (section_of(field) is not None or can_be_lifted(field))


def _without_moved(text: str, remains: dict[str, Any]) -> str:
    """Return the text of a params.yaml without the lines of the keys that moved to lexveil.toml. If
    these lines also contain other text, return the remaining values without comments.
    """
    lines = text.splitlines()
    gone: set[int] = set()
    for entry in _entries(lines, yaml.compose(text, Loader=yaml.SafeLoader), len(lines)):
        if _renamed(entry.name) is not None:
            gone.update(range(entry.begin, _without_blank_end(lines, entry)))
    kept = [line for number, line in enumerate(lines) if number not in gone]
    shorter = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n") + "\n"
    try:
        if yaml.load(shorter, Loader=LOADER) == remains:
            return shorter
    except yaml.YAMLError:
        pass
    return yaml.safe_dump(remains, allow_unicode=True, sort_keys=False)


def _without_blank_end(lines: Sequence[str], entry: _Entry) -> int:
    end = entry.end
    while end > entry.line + 1 and not lines[end - 1].strip():
        end -= 1
    return end
