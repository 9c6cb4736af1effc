"""A user's public list of factors of words (params.yaml: embeddings.scale_list), read and checked."""

from __future__ import annotations

import csv
import math

from lexveil.artifacts.word_list import listed_file
from lexveil.errors import ParameterError
from lexveil.text.listed import token_of

KEY = "params.yaml: embeddings.scale_list"
COLUMNS = ["word", "factor"]


def load_factors(named: str) -> dict[str, float]:
    """The factor of each word of FILE@HASH, by its normal form; words of a collocation are joined by ``_``.

    Raises:
        ParameterError: naming the line, if the file is not there, has another content than HASH says, is no CSV with
            columns word and factor, a factor is below 0 or no number, or a word stands there twice.
    """
    file = listed_file(named, KEY)
    name = str(file)
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
        word, factor = token_of(row[0]), float(row[1])
    except (IndexError, ValueError):
        word, factor = "", math.nan
    if len(row) != len(COLUMNS) or not word or not 0 <= factor < math.inf:
        raise ParameterError(f"{where}: must be a word and a factor, a number of at least 0")
    return word, factor
