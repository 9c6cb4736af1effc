"""The engine that rewrites texts, and what is proven and expected of its results."""

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
    """Rewrites batches with the artifacts of a model; it reads neither params.yaml nor the current
    folder. ``WordEngine`` replaces words, ``SentenceEngine`` whole texts or sentences.

    Attributes:
        lexicon: the words and collocations in which texts are looked up.
        prepared: the mechanism, with the words that go into it and come out of it.
        shares: the class of each word that decides its share of the budget; None if all have the
            same.
    """

    settings: Settings
    model: Model
    lexicon: Lexicon
    prepared: Prepared
    shares: ShareClasses | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that go into the mechanism and come out of it."""
        return self.prepared.vocabulary

    def made_with(self) -> dict[str, str]:
        """Return the sha256 of the artifacts that determine the output, by the names that a record
        gives them.
        """
        return self.model.hashes(self.settings.of_words) | self.prepared.hashes()

    def spends(self, counted: BatchCounts, budget: DocumentBudget) -> Floats:
        """(n_documents,) the epsilon that each document will spend, exactly."""
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
        """Return the measurement of a run: the mechanism that runs, and the bound that is proven
        for it.

        Args:
            budget: the budget that each document may spend; None where there are several.
            n_columns: text columns of a document; None where a column may find several texts.
            withholds: rows are left out where the ledger has nothing left for their subject.
        """
        text = self._proven(self.settings, budget, n_columns)
        return measurements.with_rows_withheld(text) if withholds else text

    def guarantee(self, measurement: Measurement, n_columns: int | None = 1) -> Guarantee:
        """Return the statement of a record; of an experiment, with that of a release with the same
        settings.

        There the noise would be the system's, and the budget a public number.
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
        """Return the bound that is proven for the mechanism with some settings."""

    def _structure(self) -> StructureFigures | None:
        """Public figures on how often a text keeps its structure when a word is replaced; None if
        outputs disclose no structure.
        """
        return None

    def described(self) -> dict[str, object]:
        """Return the fields of a record that the settings alone do not determine."""
        return {"screen": screen_record(self.settings.screen)} if self.settings.screen else {}

    def recovery_curve(self) -> StoredCurve | None:
        """Return the expected recovery by epsilon; None where it is not known."""
        return None

    def meaning(self, least: float, most: float) -> Meaning | None:  # noqa: ARG002
        """Return the meaning of the epsilons of tokens; None for an engine that does not compute
        it.

        Args:
            least, most: the least and the largest epsilon of a token.
        """
        return None

    @abstractmethod
    def disclosed(self, texts: Sequence[str]) -> DisclosedTexts:
        """Return the structure that outputs of some texts would disclose. Findings of detectors are
        ignored: they make texts more different, not less.
        """

    @abstractmethod
    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with these text columns."""


def column_keys(columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the keys that each column adds to the key of a document. The first column adds
    nothing, so that a file of one column is its own experiment by any name.
    """
    return ((), *((name,) for name in columns[1:]))


class WordEngine(Engine):
    """Engine that replaces words and collocations.

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
            if settings.policy.stopwords != "perturb":  # these have no share then
                has_share = [self.lexicon.tokens[row] not in functional for row in rows.tolist()]
                rows = ModelRows(rows[has_share])
            settings.shares.require_several(self.shares, rows)

    @property
    def instead(self) -> WrittenNumbers | None:
        """(W,) the word that is written for each drawn word; None if that is the drawn word itself
        for all words.
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
                f"{self.model.name} is in these parts, so that nothing is left to come out; "
                "choose fewer parts, or none"
            )
        return replacements(vectors, screened, self.prepared.key or key_of(vectors))

    def _proven(
        self, settings: Settings, budget: DocumentBudget | None, n_columns: int | None
    ) -> Measurement:
        return measurement_of(settings, self.prepared.mechanism, budget, n_columns)

    def _structure(self) -> StructureFigures | None:
        return self.model.structure(self.settings.strategy, self.settings.policy)

    def disclosed(self, texts: Sequence[str]) -> DisclosedTexts:
        """Return the structure that outputs of some texts would disclose. Findings of detectors are
        ignored: they make texts more different, not less.
        """
        number = self.vocabulary.number
        return DisclosedTexts.cut(texts, self.lexicon, number, self.settings.policy)

    def recovery_curve(self) -> StoredCurve:
        """Return the expected recovery of these settings by epsilon, from a sample of the words."""
        settings = self.settings
        parts = (self.model, settings.mechanism, settings.strategy, settings.policy, self.prepared)
        return StoredCurve(*parts, progress_of(self.model, settings))

    def meaning(self, least: float, most: float) -> Meaning | None:
        """Return the meaning of the epsilons of tokens; None if no token got any, or the mechanism
        refuses an epsilon near them.

        Where classes of tokens have shares of the budget an adversary knows the class, and nothing
        is worked out.

        Args:
            least, most: the least and the largest epsilon of a token.
        """
        if self.settings.shares is not None or not 0 < least <= most < math.inf:
            return None
        try:
            return self.recovery_curve().meaning(least, most)
        # what is paid for is published, also where nothing can be said of it
        except (LexveilError, OSError) as error:
            LOG.warning(f"the meaning of epsilon is not computed: {error}")
            return None

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with these text columns."""
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
    """Return the measurement of settings that replace words; arguments as of ``Engine``."""
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
