"""Runs of strategy S5 in the grid: the levels of protection of the project's bank, and why a run is
skipped.

This module reads the card of the bank alone, so that what reads it needs no mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lexveil import paths
from lexveil.errors import RequestError
from lexveil.levels import NoiseSetting, RecoveryTarget
from lexveil.protection import LEVELS, LevelName
from lexveil.request import SENTENCES
from lexveil.runtime.tables import read_object

CARD = "bank.json"
CARD_IN_RECORDS = f"bank/{CARD}"  # as records name it, wherever the bank is
KEPT_BANKS = "banks"  # folder of the user's cache
PER_TEXT = 4  # sentences that are written for a text, unless a request says how many
OFF = "take it out of params.yaml: grid.sentences, or give more text"

LevelRun = tuple[str, str, RecoveryTarget]  # mechanism, strategy and level


def level_name(level: NoiseSetting) -> LevelName:
    """Return the level of protection that a run of sentences has: its share of sources found again
    is that of content words named.
    """
    return next(name for name, shares in LEVELS.items() if shares.content == level.share)


def epsilon_of_sentences(level: NoiseSetting) -> float:
    """Return the epsilon of each sentence of a run, by the card of the project's bank.

    Raises:
        RequestError: if the run is skipped.
    """
    name = level_name(level)
    for one in read_object(paths.BANK / CARD).get("levels", []):
        if one["level"] == name:
            return float(one["epsilon"])
    raise RequestError(f"tem {SENTENCES} {level}: {why_skipped(level)}")


def why_skipped(level: NoiseSetting) -> str | None:
    """Return the reason why a run of sentences is skipped; None if the run is made."""
    card = read_object(paths.BANK / CARD)
    if not card:
        return f"the corpus has too few sentences for a bank; {OFF}"
    levels = [one["level"] for one in card["levels"]]
    if not levels:
        return f"the corpus has too little text to calibrate levels on; {OFF}"
    name = level_name(level)
    return None if name in levels else f"no epsilon keeps to the level {name}; {OFF}"


def made_sentence_runs(runs: Iterable[LevelRun]) -> list[LevelRun]:
    """Return the runs of sentences that are made, with the epsilon of their level."""
    return [
        (mechanism, strategy, RecoveryTarget(level.share, epsilon_of_sentences(level)))
        for mechanism, strategy, level in runs
        if why_skipped(level) is None
    ]


def kept_cards() -> list[Path]:
    """Return the cards of the banks in the user's cache: the one that ships, with the vectors of
    each model that has used it.
    """
    return sorted((paths.user_cache() / KEPT_BANKS).glob(f"*/{CARD}"))


def n_bank_sentences() -> int:
    """Return the number of sentences of the project's bank."""
    return int(read_object(paths.BANK / CARD)["sentences"])
