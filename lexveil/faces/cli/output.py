"""Steps that all verbs share: find the project's folder, and print results on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from lexveil.base.runtime.project import find_root, prepare, root_around
from lexveil.faces.cli.streams import say


def in_project() -> Path:
    """Change the current folder to the project's folder, and return it.

    Raises:
        RequestError: if the current folder belongs to no project.
    """
    root = find_root(Path.cwd())
    prepare(root)
    return root


def anywhere() -> Path | None:
    """Change the current folder to the project's folder, and return it. If the current folder
    belongs to no project, stay and return None.
    """
    root = root_around(Path.cwd())
    if root is not None:
        prepare(root)
    return root


def located(text: str) -> Path | str:
    """Convert the path of a file or folder to an absolute path, so that it stays valid in another
    folder. An address, and "-" for a standard stream, stay unchanged.
    """
    from lexveil.base.runtime.objects import as_path
    from lexveil.io.databases.address import is_address, read_address

    if text == "-":
        return text
    return read_address(text).text if is_address(text) else as_path(text).absolute()


def show(
    value: Any,
    as_json: bool,
    as_text: Callable[[Any], Iterable[str]] | None = None,
    *,
    stream: TextIO | None = None,
) -> None:
    """Print a result as JSON, or as the lines that ``as_text`` returns for it, or as YAML without
    ``as_text``.
    """
    stream = stream or sys.stdout
    if as_json:
        # If the encoding lacks characters, use JSON's escapes for them.
        is_utf8 = (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")
        say(json.dumps(value, indent=2, ensure_ascii=not is_utf8), stream)
    elif as_text is not None:
        say("\n".join(as_text(value)), stream)
    else:
        import yaml

        stream.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=10_000))
