"""The folder of what belongs to this user and to no project."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.errors import RequestError


def is_of_user(path: Path | str) -> bool:
    """Whether a path lies in the folder."""
    return Path(path).is_relative_to(paths.user_data())


def make_user_data() -> Path:
    """Make the folder, which nobody else may read, if it is not there.

    Raises:
        RequestError: if it cannot be made.
    """
    folder = paths.user_data()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{folder}: the folder of your models and your ledger cannot be made "
            f"({error.strerror}); name another one "
            "by the variable LEXVEIL_HOME"
        ) from None
    return folder
