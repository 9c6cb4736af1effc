"""Protection levels and the epsilon of each level. There are measured levels of packaged models
(lexveil/models/levels.json and linkage.json), levels of the project's sentence bank, and calibrated
levels of the runs of the grid, which the stage ``plan_budgets`` stores.

This module reads only the metadata card of a sentence bank, so that it needs no mechanism.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import JsonValue

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.levels import GridRun, NoiseSetting, RecoveryTarget
from lexveil.base.runtime.tables import read_json, read_object
from lexveil.core.accounting.budgets import PerToken
from lexveil.core.accounting.expected_recovery import RecoveryAt
from lexveil.core.accounting.record import Protection
from lexveil.core.accounting.results import Result
from lexveil.core.protection import LEVELS, LevelName, MeasuredLevel, MeasuredLinkage
from lexveil.io.request import SENTENCES

LINKAGE = paths.MODELS / "linkage.json"
CARD = "bank.json"
CARD_IN_RECORDS = f"bank/{CARD}"  # name of the card in records, for a bank in any folder
KEPT_BANKS = "banks"  # subfolder of the user's cache with sentence banks
PER_TEXT = 4  # number of sentences that replace a text, unless a request gives another number
OFF = "remove it from grid.sentences in params.yaml, or use a corpus with more text"
LevelRun = tuple[str, str, RecoveryTarget]  # mechanism, strategy and level
SKIPPED = "skipped.json"  # name of the only file in the text folder of a skipped run


def measured_levels(card_sha256: str) -> list[MeasuredLevel]:
    """Return the protection levels that were measured for a packaged model. The list is empty for a
    model without measurements.

    Args:
        card_sha256: SHA-256 of the model's metadata card.
    """
    by_card = json.loads((paths.MODELS / "levels.json").read_text(encoding="utf-8"))
    return [MeasuredLevel(**level) for level in by_card.get(card_sha256, {}).get("levels", [])]


def level_of(
    measured: Sequence[MeasuredLevel], mechanism: str, strategy: str, level: str
) -> MeasuredLevel | None:
    """Return the measured figures of one mechanism, strategy and protection level. The result is
    None if there are no figures.
    """
    sought = (mechanism, strategy, level)
    return next((one for one in measured if one[:3] == sought), None)


def spending_at(
    measured: Sequence[MeasuredLevel],
    sought: tuple[str, str, LevelName],
    most: float,
    ordinary_words: Callable[[], float],
) -> tuple[Protection, PerToken] | None:
    """Return the privacy record's statement about a protection level, and a budget spending that
    gives every token the epsilon of the level. The result is None if the level was not measured.

    Args:
        sought: mechanism, strategy and protection level.
        most: the largest epsilon that a token may get.
        ordinary_words: function that returns the number of words of an ordinary text, as in
            ``PerToken.of``; it is called only if the level was measured.
    """
    found = level_of(measured, *sought)
    if found is None:
        return None
    protection = Protection(
        level=sought[2],
        reader="measured on public texts, in context",
        content=found.content,
        rare=found.rare,
    )
    return protection, PerToken.of(min(found.epsilon, most), ordinary_words())


def measured_linkage(card_sha256: str) -> list[MeasuredLinkage]:
    """Return the linkage (share of identified source texts) that was measured for a packaged model.
    The list is empty for a model without measurements.

    Args:
        card_sha256: SHA-256 of the model's metadata card.
    """
    by_card = json.loads(LINKAGE.read_text(encoding="utf-8"))
    figures = by_card.get(card_sha256, {}).get("linkage", [])
    return [MeasuredLinkage(**figure) for figure in figures]


def level_name(level: NoiseSetting) -> LevelName:
    """Return the name of the protection level that corresponds to the recovery level of a sentence
    run, which replaces texts by sentences. The share of a recovery level, which bounds the named
    content words for other strategies, bounds the linkage (identified source texts) for sentences.
    """
    return next(name for name, shares in LEVELS.items() if shares.content == level.share)


def epsilon_of_sentences(level: NoiseSetting) -> float:
    """Return the epsilon of each sentence in a sentence run at a recovery level, from the metadata
    card of the project's sentence bank.

    Raises:
        RequestError: if the run is skipped.
    """
    name = level_name(level)
    for one in read_object(paths.BANK / CARD).get("levels", []):
        if one["level"] == name:
            return float(one["epsilon"])
    raise RequestError(f"tem {SENTENCES} {level}: {why_skipped(level)}")


def why_skipped(level: NoiseSetting) -> str | None:
    """Return the reason why the sentence run at a recovery level is skipped. The result is None if
    the run is not skipped.
    """
    card = read_object(paths.BANK / CARD)
    if not card:
        return f"the corpus has too few sentences for a bank; {OFF}"
    levels = [one["level"] for one in card["levels"]]
    if not levels:
        return f"the corpus has too little text to calibrate levels on; {OFF}"
    name = level_name(level)
    return None if name in levels else f"no epsilon meets the level {name}; {OFF}"


def made_sentence_runs(runs: Iterable[LevelRun]) -> list[LevelRun]:
    """Return the sentence runs that are not skipped, each with the epsilon of its recovery
    level.
    """
    return [
        (mechanism, strategy, RecoveryTarget(level.share, epsilon_of_sentences(level)))
        for mechanism, strategy, level in runs
        if why_skipped(level) is None
    ]


def kept_cards() -> list[Path]:
    """Return the paths of the metadata cards of all sentence banks in the user's cache. The
    packaged bank has one card for each model that has used it.
    """
    return sorted((paths.user_cache() / KEPT_BANKS).glob(f"*/{CARD}"))


def n_bank_sentences() -> int:
    """Return the number of sentences in the project's sentence bank."""
    return int(read_object(paths.BANK / CARD)["sentences"])


class PlannedEpsilon(Result):
    """Planned base epsilon of one run of the grid.

    Attributes:
        parameters: Parameters of the mechanism.
    """

    mechanism: str
    strategy: str
    epsilon: float
    parameters: dict[str, JsonValue]


class LevelCalibration(PlannedEpsilon):
    """Calibrated epsilon of each replaced token, at which an adversary is expected to recover a
    given share of words. It is computed from public data only.

    Attributes:
        recovery: The recovery level: the expected share of the words of ``band`` that an adversary
            recovers.
        achieved: Expected recovery at that epsilon, measured with words and noise that the
            calibration did not use.
    """

    recovery: float
    band: str
    achieved: RecoveryAt


class SkippedLevel(Result):
    """Description of a run of the grid that is skipped because no epsilon reaches its recovery
    level.

    Attributes:
        recovery: The recovery level: the wanted share of the words of ``band`` that an adversary
            recovers.
        nearest: The share nearest to the level that the run can reach.
        skipped: The reason why the run is skipped, in words.
    """

    mechanism: str
    strategy: str
    recovery: float
    band: str
    nearest: float
    skipped: str

    @property
    def name(self) -> str:
        """Mechanism, strategy and recovery level of the run, as a text."""
        return f"{self.mechanism} {self.strategy} {RecoveryTarget(self.recovery)}"


def skipped_run(mechanism: str, strategy: str, noise: NoiseSetting) -> SkippedLevel | None:
    """Return a description of why a run of the grid is skipped. The result is None if the run is
    not skipped.

    Raises:
        MissingArtifactError: if the run was not planned.
    """
    if not noise.is_level:
        return None
    if strategy == SENTENCES:
        return _skipped_sentences(mechanism, noise)
    planned = read_json(paths.planned_epsilon(mechanism, strategy, noise), "plan_budgets")
    return SkippedLevel.model_validate(planned) if "skipped" in planned else None


def _skipped_sentences(mechanism: str, level: RecoveryTarget) -> SkippedLevel | None:
    """Return a description of why a sentence run is skipped. In it the reachable linkage (share of
    identified source texts) is 0. The result is None if the run is not skipped.
    """
    why = why_skipped(level)
    if why is None:
        return None
    return SkippedLevel(
        mechanism=mechanism,
        strategy=SENTENCES,
        recovery=level.share,
        band="content",
        nearest=0.0,
        skipped=why,
    )


def made_runs(runs: Iterable[GridRun]) -> list[GridRun]:
    """Return the runs of the grid that are not skipped.

    Raises:
        MissingArtifactError: if a run was not planned.
    """
    return [run for run in runs if skipped_run(*run) is None]


def epsilon_of(mechanism: str, strategy: str, noise: NoiseSetting) -> float:
    """Return the base epsilon of a run of the grid. If the run has a recovery level, return the
    calibrated epsilon of each token from its plan.

    Raises:
        MissingArtifactError: if the run was not planned.
        RequestError: if the run is skipped.
    """
    if not noise.is_level:
        return noise.epsilon
    if strategy == SENTENCES:
        return epsilon_of_sentences(noise)
    if skipped := skipped_run(mechanism, strategy, noise):
        raise RequestError(f"{skipped.name} is skipped: {skipped.skipped}")
    planned = read_json(paths.planned_epsilon(mechanism, strategy, noise), "plan_budgets")
    return LevelCalibration.model_validate(planned).epsilon


def resolved(mechanism: str, strategy: str, noise: NoiseSetting) -> NoiseSetting:
    """Return the noise setting of a run of the grid with its epsilon. A base epsilon stays
    unchanged, and a recovery level gets the epsilon that was calibrated for it.

    Raises:
        MissingArtifactError: if the run was not planned.
    """
    if not noise.is_level:
        return noise
    return RecoveryTarget(noise.share, epsilon_of(mechanism, strategy, noise))


def named_in_record(mechanism: str, strategy: str, noise: NoiseSetting) -> dict[str, object]:
    """Return the keys and values that identify a run of the grid in records of measurements. The
    record of a run with a recovery level has both the level and the epsilon.
    """
    named: dict[str, object] = {"mechanism": mechanism, "strategy": strategy}
    named["epsilon"] = epsilon_of(mechanism, strategy, noise)
    return named | noise.level_entry
