"""Records of stages as YAML, byte for byte as DVC writes them, where they have the usual form.

An entry of dvc.lock, and of DVC's cache of runs, is mostly a list of files with their hashes. Such a list needs no
library: its values are numbers and names that YAML leaves without quotes. The rest, and a list of another form, goes
through DVC's own writer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

# Written as they are, on one line. Anything that YAML could take for a number, a time, a truth value or nothing must
# be quoted: a name here has a letter that no number has, and a point or a slash, and fits on a line; or it is a hash.
_NAME = re.compile(r"(?=[\w./@+-]*[./])(?=[\w./@+-]*[g-wyzG-WYZ])[A-Za-z][\w./@+-]{0,59}", re.ASCII)
_HASH = re.compile(r"(?=.*[a-df])(?=.*[0-9])[0-9a-f]{32}(?:\.dir)?")
_NUMBER_LIKE = re.compile(r"[0-9]*e?[0-9]*(?:\.dir)?")
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
        lines = _files(value) if key in ("deps", "outs") else None
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
