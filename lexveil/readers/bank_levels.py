"""Levels of protection of banks. A bank's card lists the levels for the usual settings; for other
numbers of sentences and for purposes they are computed and cached.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import version
from lexveil.base.runtime.tables import read_object, write_json
from lexveil.base.types import Vectors
from lexveil.core.accounting.linkage import CANDIDATES
from lexveil.core.embeddings.sentences import SentenceSpace, Units
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.mechanisms.tem import TemParameters
from lexveil.core.protection import LEVELS, LevelName, Shares
from lexveil.core.text.languages import language_of
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.io.artifacts.levels import PER_TEXT
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import STRATEGY, BankLevel, SentenceBank, without_purposes
from lexveil.readers.sentence_levels import LevelSearch, PublicSources, content_bands

LOG = logger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class BankCalibration:
    """Data for the calibration of sentence levels: model, vectors of the bank, and public texts.

    Attributes:
        model: the model of the bank.
        space: the space that gives vectors to texts.
        vectors: the sentences of the bank.
        texts: the tokens of public texts.
    """

    model: Model
    space: SentenceSpace
    vectors: Vectors
    texts: Units

    def sources(self) -> PublicSources:
        """Return the public texts as sources, with their content words."""
        plain = language_of(self.model.language).function_words
        words = without_purposes(self.model).embedding(STRATEGY)
        bands = content_bands(
            words.counts, words.tokens, lambda word: word in plain or is_punctuation(word)
        )
        return PublicSources.of(self.texts, self.space.embed(self.texts), bands)

    def search(self, per_text: int, beta: float) -> LevelSearch:
        """Return the search for levels of outputs of ``per_text`` sentences."""
        mechanism = SentenceDraws(self.vectors, self.space.radius, beta)
        return LevelSearch(mechanism, self.sources(), per_text)

    def levels(self) -> list[BankLevel]:
        """Return the levels for the card of a bank; an empty list if there are too few public
        texts. A level is left out if no epsilon satisfies it.
        """
        if len(self.texts) < CANDIDATES:
            return []
        search = self.search(PER_TEXT, TemParameters().beta)
        levels = []
        for level, shares in LEVELS.items():
            try:
                levels.append(found_level(search, level, shares))
            except RequestError as error:
                LOG.warning(f"level {level}: {error}")
        return levels


def found_level(search: LevelSearch, name: str, limits: Shares) -> BankLevel:
    """Return the epsilon of a level. The limit for content words also applies to the share of
    sources that a reader identifies.

    Raises:
        RequestError: if no epsilon satisfies the level.
    """
    epsilon, reached = search.largest(limits.content, limits)
    shares = {key: round(share, 4) for key, share in reached._asdict().items()}
    return BankLevel(level=name, epsilon=epsilon, **shares)


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
    if per_text is None:
        raise RequestError(
            f"{option('protection')}: levels exist only for the unit text; {way_out}, or leave "
            f"{option('unit')} out"
        )
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


def _worked_out(bank: SentenceBank, model: Model, per_text: int, name: LevelName) -> BankLevel:
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
    LOG.info(
        f"computing the epsilon of the level {name} for {per_text} sentences by {model.name}: "
        "this can take some minutes, but only once, because the result is cached"
    )
    calibration = BankCalibration(model, bank.space, bank.vectors, bank.public)
    level = found_level(calibration.search(per_text, beta), name, LEVELS[name])
    write_json(level.to_dict(), file)
    return level
