"""What rewrites files, with the options of a request as keyword arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lexveil.artifacts.model import Model
from lexveil.privatization.adapters import files
from lexveil.privatization.adapters.files import PrivatizedFiles, ReleaseHooks
from lexveil.privatization.looking import preview as looking
from lexveil.privatization.looking.preview import Preview
from lexveil.request import FileRequest


def privatize_file(
    source: Path | str,
    target: Path | str,
    *,
    project: Path | Model | None = None,
    model: str | None = None,
    hooks: ReleaseHooks | None = None,
    **options: Any,
) -> PrivatizedFiles:
    """Rewrite a file or a folder."""
    return files.privatize_file(source, target, FileRequest.of(options), project=project, model=model, hooks=hooks)


def preview(
    source: Path | str, n_rows: int, *, project: Path | Model | None = None, model: str | None = None, **options: Any
) -> Preview:
    """Rewrite the first rows."""
    request = FileRequest.of(options | {"mode": "experiment"})
    return looking.preview(source, n_rows, request, project=project, model=model)
