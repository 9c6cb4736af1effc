"""The folder of what belongs to this user and to no project."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths


def make_user_data() -> Path:
    """Make the folder, which nobody else may read, if it is not there."""
    folder = paths.user_data()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
