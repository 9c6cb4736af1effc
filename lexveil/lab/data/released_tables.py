"""Reader for collocation score tables in the form that the authors of CLMLDP released.

A table is a JSON object. Its keys are collocations, which are lower-case words joined by ``_``; its
values are scores, PMI in bits. ``bigrams.json`` holds pairs, ``trigrams.json`` triples.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from lexveil.base.errors import RequestError
from lexveil.io.formats.messages import shown

JOINT = "_"


def read_scores(bigrams: Path, trigrams: Path) -> dict[str, float]:
    """Read two tables of collocation scores and return the score of each collocation in bits.

    Raises:
        RequestError: with file and entry of the first fault: no JSON object, a repeated entry, a
            wrong number of words, capitals, or a score that is not a finite number.
    """
    return _scores(bigrams, 2) | _scores(trigrams, 3)


def _check_token(where: str, token: str, n_words: int) -> None:
    words = token.split(JOINT)
    if len(words) != n_words or not all(words):
        raise RequestError(f"{where}: is not {n_words} words joined by {JOINT}")
    if token != token.lower():
        raise RequestError(f"{where}: contains capitals; write the table in lower case")


def _finite(where: str, score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise RequestError(f"{where}: its score is not a number")
    if not math.isfinite(score):
        raise RequestError(f"{where}: its score is not finite")
    return float(score)


def _scores(file: Path, n_words: int) -> dict[str, float]:
    def checked(entries: list[tuple[str, object]]) -> dict[str, float]:
        scores: dict[str, float] = {}
        for number, (token, score) in enumerate(entries, 1):
            where = f"{shown(file)}, entry {number:,}, {shown(token)}"
            _check_token(where, token, n_words)
            if token in scores:
                raise RequestError(f"{where}: has two scores; remove one")
            scores[token] = _finite(where, score)
        return scores

    try:
        with file.open(encoding="utf-8") as stream:
            scores = json.load(stream, object_pairs_hook=checked)
    except OSError as error:
        raise RequestError(f"{shown(file)}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise RequestError(f"{shown(file)}: not valid JSON in UTF-8") from None
    if not isinstance(scores, dict) or not scores:
        raise RequestError(
            f"{shown(file)}: not a JSON object with a score for each collocation, "
            'such as {"new_york": 9.5}'
        )
    return scores
