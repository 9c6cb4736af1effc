"""Levels of protection of banks. A bank's card lists the levels for the usual settings; for other
numbers of sentences and for purposes they are computed and cached.
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
from lexveil.io.artifacts.sentence_banks import STRATEGY, BankLevel, SentenceBank, without_purposes
from lexveil.readers.sentence_levels import (
    LevelSearch,
    PublicSources,
    content_bands,
    epsilon_of,
)

LOG = logger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class BankCalibration:
    """Data for the calibration of sentence levels: model, vectors of the bank, and public texts.

    Attributes:
        model: the model of the bank.
        space: the space that gives vectors to texts.
        vectors: the sentences of the bank.
        texts: public texts.
    """

    model: Model
    space: SentenceSpace
    vectors: Vectors
    texts: CutTexts

    def sources(self, per_text: int | None) -> PublicSources:
        """Return the public texts as sources, with their content words.

        Args:
            per_text: number of sentences that are written for a text; None if one sentence is
                written for each sentence.
        """
        plain = language_of(self.model.language).function_words
        words = without_purposes(self.model).embedding(STRATEGY)
        bands = content_bands(
            words.counts, words.tokens, lambda word: word in plain or is_punctuation(word)
        )
        return PublicSources.of(self.texts, per_text, self.space.embed, bands)

    def search(self, per_text: int | None, beta: float = TemParameters().beta) -> LevelSearch:
        """Return the search for levels of outputs that are written as ``sources`` says."""
        mechanism = SentenceDraws(self.vectors, self.space.radius, beta)
        return LevelSearch(mechanism, self.sources(per_text))

    def levels(self) -> list[BankLevel]:
        """Return the levels for the card of a bank; an empty list if there are too few public
        texts. A level is left out if no epsilon satisfies it.
        """
        if len(self.texts) < CANDIDATES:
            return []
        return found_levels([self.search(PER_TEXT)])


def found_levels(searches: Sequence[LevelSearch]) -> list[BankLevel]:
    """Return the levels that hold for each of several kinds of public text. A level is left out if
    no epsilon satisfies it.
    """
    levels = []
    for level, shares in LEVELS.items():
        try:
            levels.append(found_level(searches, level, shares))
        except RequestError as error:
            LOG.warning(f"level {level}: {error}")
    return levels


def found_level(searches: Sequence[LevelSearch], name: str, limits: Shares) -> BankLevel:
    """Return a level that holds for each of several kinds of public text, with the largest shares
    among these kinds. The limit for content words also applies to the share of sources that a
    reader identifies.

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
    """Return a level of a bank, for a model and its purposes.

    Args:
        per_text: number of sentences that are written for a text; None if one sentence is written
            for each sentence.

    Raises:
        RequestError: if the bank has no levels for these settings, or no epsilon satisfies the
            level.
    """
    way_out = f"name {option('epsilon')} (docs/reference/sentences.md)"
    if len(bank.public) < CANDIDATES:
        raise RequestError(
            f"{bank.folder}: the bank has no levels of protection, because it was built from too "
            f"few texts: {CANDIDATES:,} texts of about 40 words are needed; {way_out}"
        )
    beta = model.params.mechanisms.tem.beta
    if not model.purposes and per_text == PER_TEXT and beta == TemParameters().beta:
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
    """Return a level for other than the default settings, from the cache or by a new
    computation.
    """
    beta = model.params.mechanisms.tem.beta
    purposes = [f"{purpose} {purpose.sha256}" for purpose in model.purposes]
    key = "\n".join([version(), bank.sha256, str(per_text), repr(beta), name, *purposes])
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
