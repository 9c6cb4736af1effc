"""Public lists of a user, named in params.yaml as FILE@HASH: a change of the content is a change of the name."""

from __future__ import annotations

from pathlib import Path

from lexveil.artifacts.external_embeddings import DIGITS
from lexveil.errors import ParameterError
from lexveil.runtime.hashes import sha256
from lexveil.text.listed import token_of


def listed_file(named: str, key: str) -> Path:
    """The file of FILE@HASH.

    Args:
        key: of params.yaml, for messages.

    Raises:
        ParameterError: if the file is not there, or has another content than HASH says.
    """
    name, _, wanted = named.rpartition("@")
    file = Path(name)
    if not file.is_file():
        raise ParameterError(f"{key}: there is no file {name}; paths are relative to the project's folder")
    if (found := sha256(file)[:DIGITS]) != wanted:
        raise ParameterError(f"{key} is {named}, but the file is {name}@{found}; write that if its change is meant")
    return file


def load_words(named: str, key: str) -> frozenset[str]:
    """The words of a list with a word or collocation a line; arguments as ``listed_file``.

    Raises:
        ParameterError: as ``listed_file``, or if the file is no text in UTF-8 or holds no word.
    """
    file = listed_file(named, key)
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (UnicodeDecodeError, OSError):
        raise ParameterError(f"{key}: {file} is no text file in UTF-8, one word a line") from None
    if not (words := frozenset(filter(None, map(token_of, lines)))):
        raise ParameterError(f"{key}: {file} holds no word; write one a line, or null for no list")
    return words
