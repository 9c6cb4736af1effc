"""Records of stages as YAML, byte for byte as DVC writes them, where they have the usual form; and read again.

An entry of dvc.lock, and of DVC's cache of runs, is mostly a list of files with their hashes. Such a list needs no
library: its values are numbers and names that YAML leaves without quotes. The rest, and a list of another form, goes
through DVC's own writer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lexveil.runtime.lock_text import HEAD

# Written as they are, on one line. Anything that YAML could take for a number, a time, a truth value or nothing must
# be quoted: a name here has a letter that no number has, and a point or a slash, and fits on a line; or it is a hash.
_NAME = re.compile(r"(?=[\w./@+-]*[./])(?=[\w./@+-]*[g-wyzG-WYZ])[A-Za-z][\w./@+-]{0,59}", re.ASCII)
_HASH = re.compile(r"(?=.*[a-df])(?=.*[0-9])[0-9a-f]{32}(?:\.dir)?")
_NUMBER_LIKE = re.compile(r"[0-9]*e?[0-9]*(?:\.dir)?")
_SECTION = re.compile(r"^    (\w+):", re.MULTILINE)
_LINE = re.compile(r"    ([ -]) (\w+): (.+)")
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_LISTS = ("deps", "outs")
_KEYS = ("path", "hash", "md5", "size", "nfiles", "isexec")


def entry_text(record: Mapping[str, Any], dumps: Callable[[Any], str], indent: str = "") -> str:
    """Write one record: cmd, deps, params, outs.

    Args:
        record: of one stage.
        dumps: DVC's writer.
        indent: before each line; of an entry in dvc.lock four spaces.
    """
    depth = len(indent) // 2
    parts = []
    for key, value in record.items():
        lines = _files(value) if key in _LISTS else None
        if lines is None:
            content: Any = {key: value}
            for _ in range(depth):
                content = {"x": content}
            text = dumps(content)
            for level in range(depth):
                text = text.removeprefix(f"{'  ' * level}x:\n")
            parts.append(text)
        else:
            parts.append(f"{indent}{key}:\n" + "".join(f"{indent}{line}\n" for line in lines))
    return "".join(parts)


def read_entries(texts: Mapping[str, str], parse: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Read entries of dvc.lock by name: lists of files of the usual form here, all else by ``parse``.

    Args:
        texts: of entries, as lock_text.cut has them.
        parse: reads the text of a dvc.lock and returns its entries by name.
    """
    rest: dict[str, str] = {}
    found: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        begins = [*_SECTION.finditer(text)]
        ends = [*(begin.start() for begin in begins[1:]), len(text)]
        sections = {begin[1]: text[begin.start() : end] for begin, end in zip(begins, ends, strict=True)}
        lists = {key: _read_files(sections[key]) for key in _LISTS if key in sections}
        read = {key: value for key, value in lists.items() if value is not None}
        if len(sections) != len(begins) or len(read) == len(sections):
            read = {}
        found[name] = {key: read.get(key) for key in sections}
        rest[name] = "".join(part for key, part in sections.items() if key not in read) if read else ""
        rest[name] = f"  {name}:\n{rest[name]}" if read else text
    entries = parse(HEAD + "".join(rest.values())) if rest else {}
    for name, entry in entries.items():
        read = {key: value for key, value in found.get(name, {}).items() if value is not None}
        if read:
            entries[name] = {key: read[key] if key in read else entry[key] for key in found[name]}
    return entries


def _read_files(text: str) -> list[dict[str, Any]] | None:
    """Return a list of files as it was written; None where it has another form."""
    head, *lines = text.splitlines()
    if not head.endswith(":"):
        return None
    files: list[dict[str, Any]] = []
    for line in lines:
        item = _read_line(line)
        if item is None:
            return None
        begins, key, value = item
        if begins:
            files.append({key: value})
        elif not files or key in files[-1]:
            return None
        else:
            files[-1][key] = value
    return files or None


@lru_cache(maxsize=1 << 16)
def _read_line(line: str) -> tuple[bool, str, Any] | None:
    """Return whether a line begins a file, its key and its value; None if the value must be read as YAML."""
    match = _LINE.fullmatch(line)
    if not match or match[2] not in _KEYS:
        return None
    text = match[3]
    value: Any = int(text) if _INTEGER.fullmatch(text) else {"true": True, "false": False}.get(text, text)
    return (match[1] == "-", match[2], value) if _scalar(value) == text else None


def _files(value: Any) -> list[str] | None:
    """Return the lines of a list of files; None where it has another form."""
    if not isinstance(value, list) or not value:
        return None
    lines = []
    for item in value:
        if type(item) is not dict or not item or any(key not in _KEYS for key in item):
            return None
        mark = "- "
        for key, content in item.items():
            text = _scalar(content)
            if text is None:
                return None
            lines.append(f"{mark}{key}: {text}")
            mark = "  "
    return lines


def _scalar(value: Any) -> str | None:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        return None
    if value == "md5" or _NAME.fullmatch(value) or (_HASH.fullmatch(value) and not _NUMBER_LIKE.fullmatch(value)):
        return value
    return None
