"""A user's public list of factors of words (params.yaml: embeddings.scale_list), read and checked."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from lexveil.artifacts.external_embeddings import DIGITS
from lexveil.errors import ParameterError
from lexveil.runtime.hashes import sha256
from lexveil.text.tokenize import normal_form

KEY = "params.yaml: embeddings.scale_list"
COLUMNS = ["word", "factor"]


def load_factors(named: str) -> dict[str, float]:
    """The factor of each word of FILE@HASH, by its normal form; words of a collocation are joined by ``_``.

    Raises:
        ParameterError: naming the line, if the file is not there, has another content than HASH says, is no CSV with
            columns word and factor, a factor is below 0 or no number, or a word stands there twice.
    """
    name, _, wanted = named.rpartition("@")
    file = Path(name)
    if not file.is_file():
        raise ParameterError(f"{KEY}: there is no file {name}; paths are relative to the project's folder")
    if (found := sha256(file)[:DIGITS]) != wanted:
        raise ParameterError(f"{KEY} is {named}, but the file is {name}@{found}; write that if its change is meant")
    factors: dict[str, float] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.reader(lines, strict=True)
            if next(rows, None) != COLUMNS:
                raise ParameterError(f"{name}, line 1: the columns must be {','.join(COLUMNS)}")
            for row in rows:
                if row:
                    word, factor = _entry(row, f"{name}, line {rows.line_num}")
                    if word in factors:
                        raise ParameterError(
                            f"{name}, line {rows.line_num}: this word stands there before; give it once"
                        )
                    factors[word] = factor
    except (UnicodeDecodeError, csv.Error):
        raise ParameterError(f"{name} is no CSV in UTF-8") from None
    return factors


def _entry(row: list[str], where: str) -> tuple[str, float]:
    try:
        word, factor = "_".join(map(normal_form, row[0].split())), float(row[1])
    except (IndexError, ValueError):
        word, factor = "", math.nan
    if len(row) != len(COLUMNS) or not word or not 0 <= factor < math.inf:
        raise ParameterError(f"{where}: must be a word and a factor, a number of at least 0")
    return word, factor
