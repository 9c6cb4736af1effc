"""What rewrites files, with the options of a request as keyword arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexveil.privatization.adapters import files
from lexveil.privatization.adapters.files import PrivatizedFiles
from lexveil.privatization.looking import preview as looking
from lexveil.privatization.looking.preview import Preview
from lexveil.request import FileRequest


def privatize_file(
    source: Path | str, target: Path | str, *, project: Any = None, model: Any = None, hooks: Any = None, **how: Any
) -> PrivatizedFiles:
    """Rewrite a file or a folder."""
    return files.privatize_file(source, target, FileRequest.of(how), project=project, model=model, hooks=hooks)


def preview(source: Path | str, n_rows: int, *, project: Any = None, model: str | None = None, **how: Any) -> Preview:
    """Rewrite the first rows."""
    request = FileRequest.of(how | {"mode": "experiment"})
    return looking.preview(source, n_rows, request, project=project, model=model)
