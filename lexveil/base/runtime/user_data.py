"""The user's data folder, which holds the files that belong to no project."""

from __future__ import annotations

from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import RequestError


def is_of_user(path: Path | str) -> bool:
    """Return whether a path lies in the user's data folder."""
    return Path(path).is_relative_to(paths.user_data())


def make_user_data() -> Path:
    """Create the user's data folder if it does not exist, readable only by this user.

    Raises:
        RequestError: if it cannot be created.
    """
    folder = paths.user_data()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{folder}: the folder of your models and your ledger cannot be created "
            f"({error.strerror}); choose another folder with the variable LEXVEIL_HOME"
        ) from None
    return folder
