"""The engine that rewrites texts, and states the proven privacy bounds and the expected recovery
(the share of words that an adversary would guess).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.base.logs import logger
from lexveil.base.types import Floats, ModelRows, WrittenNumbers
from lexveil.core.accounting import measurements
from lexveil.core.accounting.budgets import DEFAULT_FOUND, DocumentBudget
from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.core.accounting.measurements import Measurement
from lexveil.core.accounting.record import Guarantee
from lexveil.core.accounting.shares import ShareClasses
from lexveil.core.accounting.structure import StructureFigures
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.neighborhoods import key_of
from lexveil.io.artifacts.screened_words import (
    is_screened,
    replacements,
    screen_record,
    screened_words,
)
from lexveil.readers.linkage import DisclosedTexts
from lexveil.readers.stored_curve import StoredCurve
from lexveil.release.engine.batch import token_log_schema
from lexveil.release.engine.counts import BatchCounts
from lexveil.release.engine.worker import BatchWorker, Components, allocate
from lexveil.release.settings import Settings, progress_of

LOG = logger(__name__)


class Engine(ABC):
    """Rewriter of batches of texts with a model, which does not depend on params.yaml or the
    current folder.

    ``WordEngine`` replaces words, and ``SentenceEngine`` replaces whole texts or sentences.

    Attributes:
        lexicon: the words and collocations that texts are tokenized into.
        prepared: the mechanism, with the words that it may replace and write.
        shares: the class of each word, which determines the word's share of the budget; None if all
            words have the same share.
    """

    settings: Settings
    model: Model
    lexicon: Lexicon
    prepared: Prepared
    shares: ShareClasses | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the mechanism may replace and write."""
        return self.prepared.vocabulary

    def made_with(self) -> dict[str, str]:
        """Return the SHA-256 of each model file that determines the output, by its name in privacy
        records.
        """
        return self.model.hashes(self.settings.of_words) | self.prepared.hashes()

    def spends(self, counted: BatchCounts, budget: DocumentBudget) -> Floats:
        """Return the exact epsilon that each document will spend, shape (n_documents,)."""
        counts = counted.counts
        spent: Floats = allocate(self.settings.strategy, budget, counts, self.shares) * counts[2]
        return spent

    def measurement(
        self,
        budget: DocumentBudget | None = None,
        n_columns: int | None = 1,
        *,
        withholds: bool = False,
    ) -> Measurement:
        """Return the mechanism of a run with the privacy bound that is proven for it.

        Args:
            budget: the budget that each document may spend; None if documents have several budgets.
            n_columns: number of text columns of a document; None if a column may have several
                texts.
            withholds: whether rows are withheld if the rest of their subject's budget is too small.
        """
        text = self._proven(self.settings, budget, n_columns)
        return measurements.with_rows_withheld(text) if withholds else text

    def guarantee(self, measurement: Measurement, n_columns: int | None = 1) -> Guarantee:
        """Return the statement of the privacy guarantee for a privacy record. For an experiment,
        the statement also gives the guarantee that a release with the same settings would have.

        In that release, the noise would come from the operating system, and the budget would be a
        public number.
        """
        structure = self._structure()
        stated = measurement.guarantee(structure)
        settings = self.settings
        if settings.mode != "experiment":
            return stated
        spending = settings.spending and settings.spending.in_release()
        in_release = replace(settings, seed=None, spending=spending)
        release = self._proven(in_release, None, n_columns)
        return stated.model_copy(update={"in_release": release.guarantee(structure)})

    @abstractmethod
    def _proven(
        self, settings: Settings, budget: DocumentBudget | None, n_columns: int | None
    ) -> Measurement:
        """Return the mechanism with the given settings and the privacy bound that is proven for
        it.
        """

    def _structure(self) -> StructureFigures | None:
        """Public figures on how often a text keeps its disclosed structure (such as its number of
        tokens) when a word is replaced, or None if outputs disclose no structure.
        """
        return None

    def described(self) -> dict[str, object]:
        """Return the fields of a privacy record that the engine knows and that the settings alone
        do not determine.
        """
        return {"screen": screen_record(self.settings.screen)} if self.settings.screen else {}

    def recovery_curve(self) -> StoredCurve | None:
        """Return the expected recovery (the share of words that an adversary would guess) as a
        function of epsilon, or None if it is not known.
        """
        return None

    def meaning(self, least: float, most: float) -> Meaning | None:  # noqa: ARG002
        """Return what the epsilons of tokens mean in practice: the share of words that an adversary
        is expected to guess. The result is None for an engine that does not compute it.

        Args:
            least, most: the least and the largest epsilon of a token.
        """
        return None

    @abstractmethod
    def disclosed(self, texts: Sequence[str]) -> DisclosedTexts:
        """Return the structure (such as the number of tokens) that the outputs of some texts would
        disclose. Matches of detectors are ignored, because they make texts more different, not
        less.
        """

    @abstractmethod
    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with the given text columns."""


def column_keys(columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return, for each text column, the keys that it adds to a document's random seed. The first
    column adds nothing, so that a file with one column gets the same noise whatever the name of the
    column.
    """
    return ((), *((name,) for name in columns[1:]))


class WordEngine(Engine):
    """Engine that rewrites texts by replacing words and collocations.

    Raises:
        MissingArtifactError: if no run has made the artifacts.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """

    def __init__(self, settings: Settings, model: Model) -> None:
        assert settings.sentences is None
        self.settings = settings
        self.model = model
        self.lexicon = model.lexicon(settings.strategy)
        self.prepared = model.mechanism(settings.mechanism, settings.strategy, settings.policy)
        if settings.shares is not None:
            self.shares = settings.shares.over(self.lexicon.tokens, self.lexicon.function_words)
            rows = self.vocabulary.rows
            functional = self.lexicon.function_words
            if settings.policy.stopwords != "perturb":  # these words have no share
                has_share = [self.lexicon.tokens[row] not in functional for row in rows.tolist()]
                rows = ModelRows(rows[has_share])
            settings.shares.require_several(self.shares, rows)

    @property
    def instead(self) -> WrittenNumbers | None:
        """The word that is written in place of each drawn word, shape (W,), or None if every drawn
        word is written unchanged.
        """
        if not self.settings.screen:
            return None
        return self.prepared.once(f"instead of {self.settings.screen}", self._instead)

    def _instead(self) -> WrittenNumbers | None:
        vectors = self.vocabulary.vectors
        rows = self.vocabulary.rows.tolist()
        words = screened_words(self.settings.screen)
        screened = is_screened([self.lexicon.tokens[row] for row in rows], words)
        if screened.all():
            raise RequestError(
                f"{option('screen')} {','.join(self.settings.screen)}: every word of model "
                f"{self.model.name} is in these parts, so no word is left to write; choose "
                "fewer parts, or none"
            )
        return replacements(vectors, screened, self.prepared.key or key_of(vectors))

    def _proven(
        self, settings: Settings, budget: DocumentBudget | None, n_columns: int | None
    ) -> Measurement:
        return measurement_of(settings, self.prepared.mechanism, budget, n_columns)

    def _structure(self) -> StructureFigures | None:
        return self.model.structure(self.settings.strategy, self.settings.policy)

    def disclosed(self, texts: Sequence[str]) -> DisclosedTexts:
        """Return the structure (such as the number of tokens) that the outputs of some texts would
        disclose. Matches of detectors are ignored, because they make texts more different, not
        less.
        """
        number = self.vocabulary.number
        return DisclosedTexts.cut(texts, self.lexicon, number, self.settings.policy)

    def recovery_curve(self) -> StoredCurve:
        """Return the expected recovery (the share of words that an adversary would guess) as a
        function of epsilon, computed on a sample of the vocabulary.
        """
        settings = self.settings
        parts = (self.model, settings.mechanism, settings.strategy, settings.policy, self.prepared)
        return StoredCurve(*parts, progress_of(self.model, settings))

    def meaning(self, least: float, most: float) -> Meaning | None:
        """Return what the epsilons of tokens mean in practice: the share of words that an adversary
        is expected to guess.

        The result is None if no token has any epsilon, or if the mechanism refuses an epsilon in
        this range. If token classes have different shares of the budget, the result is None too,
        because the adversary then knows the class, which the computation does not cover.

        Args:
            least, most: the least and the largest epsilon of a token.
        """
        if self.settings.shares is not None or not 0 < least <= most < math.inf:
            return None
        try:
            return self.recovery_curve().meaning(least, most)
        # publish a charged output even if its recovery cannot be computed
        except (LexveilError, OSError) as error:
            LOG.warning(f"the meaning of epsilon is not computed: {error}")
            return None

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with the given text columns."""
        components = Components(
            self.lexicon, self.vocabulary, self.prepared.mechanism, self.instead
        )
        log = tuple(token_log_schema(len(columns), self.settings).names)
        return BatchWorker(
            self.settings, components, tuple(columns), column_keys(columns), self.shares, log
        )


def measurement_of(
    settings: Settings,
    mechanism: Mechanism,
    budget: DocumentBudget | None = None,
    n_columns: int | None = 1,
) -> Measurement:
    """Return the mechanism for settings that replace words, with its proven privacy bound. The
    arguments are those of ``Engine.measurement``.
    """
    token = measurements.of_token(mechanism)
    text = measurements.over_tokens(token, settings.policy, seed_is_known=settings.seed is not None)
    text = measurements.over_columns(text, n_columns)
    if settings.screen:
        text = measurements.with_screened_words(text, settings.screen)
    if settings.empties_scripts:
        text = measurements.with_scripts_emptied(text)
    if settings.consistent:
        text = measurements.repeated_alike(text)
    if settings.keep_layout:
        text = measurements.with_layout_copied(text)
    if settings.shares is not None:
        text = measurements.with_shares(text, settings.shares)
    if (detection := settings.detection) is not None:
        text = measurements.with_detectors(
            text, detection.sources, detection.actions, DEFAULT_FOUND
        )
    return measurements.under_strategy(text, settings.strategy, settings.budget_source, budget)
