"""Protection levels of sentence banks: the largest epsilon at which an adversary recovers at most a
given share. The metadata card of a bank lists the levels for the usual settings; for other settings
they are computed and cached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import version
from lexveil.base.runtime.tables import read_object, write_json
from lexveil.base.types import Vectors
from lexveil.core.accounting.linkage import CANDIDATES
from lexveil.core.embeddings.sentences import CutTexts, SentenceSpace
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.mechanisms.tem import TemParameters
from lexveil.core.protection import LEVELS, LevelName, Shares
from lexveil.core.text.languages import language_of
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.io.artifacts.levels import PER_TEXT
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    STRATEGY,
    BankLevel,
    SentenceBank,
    has_usual_tem,
    without_purposes,
)
from lexveil.readers.sentence_levels import (
    LevelSearch,
    PublicSources,
    content_bands,
    epsilon_of,
)

LOG = logger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class BankCalibration:
    """Data with which the protection levels of a sentence bank are calibrated.

    Attributes:
        model: the model that gives the sentences their vectors.
        space: the space that gives vectors to texts.
        vectors: the vectors of the sentences in the bank.
        texts: public texts.
    """

    model: Model
    space: SentenceSpace
    vectors: Vectors
    texts: CutTexts

    def sources(self, per_text: int | None) -> PublicSources:
        """Return the public texts as sources of simulated outputs, with their content words.

        Args:
            per_text: number of sentences that replace a text; None if one sentence replaces each
                sentence.
        """
        plain = language_of(self.model.language).function_words
        words = without_purposes(self.model).embedding(STRATEGY)
        bands = content_bands(
            words.counts, words.tokens, lambda word: word in plain or is_punctuation(word)
        )
        return PublicSources.of(self.texts, per_text, self.space.embed, bands)

    def search(self, per_text: int | None, beta: float = TemParameters().beta) -> LevelSearch:
        """Return the search for the epsilons of protection levels.

        Args:
            per_text: number of sentences that replace a text; None if one sentence replaces each
                sentence.
        """
        mechanism = SentenceDraws(self.vectors, self.space.radius, beta)
        return LevelSearch(mechanism, self.sources(per_text))

    def levels(self) -> list[BankLevel]:
        """Return the protection levels that the metadata card of a sentence bank lists. The list is
        empty if there are too few public texts. A level is left out if no epsilon satisfies it.
        """
        if len(self.texts) < CANDIDATES:
            return []
        return found_levels([self.search(PER_TEXT)])


def found_levels(searches: Sequence[LevelSearch]) -> list[BankLevel]:
    """Return the protection levels that hold for each of several kinds of public text. A level is
    left out if no epsilon satisfies it.
    """
    levels = []
    for level, shares in LEVELS.items():
        try:
            levels.append(found_level(searches, level, shares))
        except RequestError as error:
            LOG.warning(f"level {level}: {error}")
    return levels


def found_level(searches: Sequence[LevelSearch], name: str, limits: Shares) -> BankLevel:
    """Return a protection level that holds for each of several kinds of public text, with the
    largest measured shares among these kinds. The limit for content words also applies to the share
    of source texts that an adversary identifies.

    Raises:
        RequestError: if no epsilon satisfies the level.
    """
    step = min(search.largest(limits.content, limits) for search in searches)
    at = [(search.at(step), search.blind) for search in searches]
    content, content_without = max((found.content, blind.content) for found, blind in at)
    rare, rare_without = max((found.rare, blind.rare) for found, blind in at)
    return BankLevel(
        level=name,
        epsilon=epsilon_of(step),
        linkage=round(max(found.linkage for found, _ in at), 4),
        content=round(content, 4),
        rare=round(rare, 4),
        content_without=round(content_without, 4),
        rare_without=round(rare_without, 4),
    )


def level_of_bank(
    bank: SentenceBank, model: Model, per_text: int | None, name: LevelName
) -> BankLevel:
    """Return one protection level of a sentence bank, for a model and its purposes (preserved word
    scales).

    Args:
        per_text: number of sentences that replace a text; None if one sentence replaces each
            sentence.

    Raises:
        RequestError: if the bank has no protection levels for these settings, or no epsilon
            satisfies the level.
    """
    way_out = f"name {option('epsilon')} (docs/reference/sentences.md)"
    if len(bank.public) < CANDIDATES:
        raise RequestError(
            f"{bank.folder}: the bank has no levels of protection, because it was built from too "
            f"few texts: {CANDIDATES:,} texts of about 40 words are needed; {way_out}"
        )
    if not model.purposes and per_text == PER_TEXT and has_usual_tem(model):
        known = [level for level in bank.card.levels if level.level == name]
        if known:
            return known[0]
        raise RequestError(
            f"{bank.folder}: no epsilon satisfies the level {name} for this bank; {way_out}"
        )
    return _worked_out(bank, model, per_text, name)


def _worked_out(
    bank: SentenceBank, model: Model, per_text: int | None, name: LevelName
) -> BankLevel:
    """Return one protection level of a sentence bank for settings that differ from the defaults,
    from the cache or by a new computation.

    Args:
        per_text: number of sentences that replace a text; None if one sentence replaces each
            sentence.
    """
    beta = model.params.mechanisms.tem.beta
    settings = [bank.sha256, str(per_text), repr(beta), name, *model.weighted_purposes]
    key = "\n".join([version(), *settings])
    digest = hashlib.sha256(key.encode()).hexdigest()
    file: Path = model.project.recovery / f"sentences-{digest[:32]}.json"
    if stored := read_object(file):
        return BankLevel.model_validate(stored)
    drawn = "one sentence for each" if per_text is None else f"{per_text} sentences"
    LOG.info(
        f"computing the epsilon of the level {name} for {drawn} by {model.name}: this can take "
        "some minutes, but only once, because the result is cached"
    )
    calibration = BankCalibration(model, bank.space, bank.vectors, bank.public)
    level = found_level([calibration.search(per_text, beta)], name, LEVELS[name])
    write_json(level.to_dict(), file)
    return level
