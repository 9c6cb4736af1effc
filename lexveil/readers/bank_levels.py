"""Levels of protection of banks: those on their cards, and those that are worked out, and kept, for
other numbers of sentences and for purposes.
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
class Calibration:
    """Data for the calibration of levels of sentences: model, vectors of the bank, and public
    texts.

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
        """Return the texts as sources, with their content words."""
        plain = language_of(self.model.language).function_words
        words = without_purposes(self.model).embedding(STRATEGY)
        bands = content_bands(
            words.counts, words.tokens, lambda word: word in plain or is_punctuation(word)
        )
        return PublicSources.of(self.texts, self.space.embed(self.texts), bands)

    def search(self, per_text: int, beta: float) -> LevelSearch:
        """Return the search among outputs of ``per_text`` sentences."""
        mechanism = SentenceDraws(self.vectors, self.space.radius, beta)
        return LevelSearch(mechanism, self.sources(), per_text)

    def levels(self) -> list[BankLevel]:
        """Return the levels of the card of a bank; none where there are too few public texts. A
        level that no epsilon keeps to is left out.
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
    """Return the epsilon of a level: sources may be found again as often as content words are
    named.

    Raises:
        RequestError: if no epsilon keeps to it.
    """
    epsilon, reached = search.largest(limits.content, limits)
    shares = {key: round(share, 4) for key, share in reached._asdict().items()}
    return BankLevel(level=name, epsilon=epsilon, **shares)


def level_of_bank(
    bank: SentenceBank, model: Model, per_text: int | None, name: LevelName
) -> BankLevel:
    """Return the level of a bank for a model and its purposes.

    Args:
        per_text: sentences that are written for a text; None where there is one for each sentence.

    Raises:
        RequestError: if it is not known, or no epsilon keeps to it.
    """
    way_out = f"name {option('epsilon')} (docs/reference/sentences.md)"
    if per_text is None:
        raise RequestError(
            f"{option('protection')}: levels are measured with the text as unit; {way_out}, or "
            f"leave {option('unit')} out"
        )
    if len(bank.public) < CANDIDATES:
        raise RequestError(
            f"{bank.folder}: has no levels of protection, since it was built of too few texts: "
            f"{CANDIDATES:,} of about 40 words are needed; {way_out}"
        )
    beta = model.params.mechanisms.tem.beta
    if not model.purposes and per_text == PER_TEXT and beta == TemParameters().beta:
        known = [level for level in bank.card.levels if level.level == name]
        if known:
            return known[0]
        raise RequestError(f"{bank.folder}: no epsilon keeps to the level {name}; {way_out}")
    return _worked_out(bank, model, per_text, name)


def _worked_out(bank: SentenceBank, model: Model, per_text: int, name: LevelName) -> BankLevel:
    """Return the level for settings other than the usual ones, from the cache or by a new
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
        f"computing, once, the epsilon of the level {name} for {per_text} sentences by "
        f"{model.name}: this takes up to some minutes, and the result is cached"
    )
    calibration = Calibration(model, bank.space, bank.vectors, bank.public)
    level = found_level(calibration.search(per_text, beta), name, LEVELS[name])
    write_json(level.to_dict(), file)
    return level
