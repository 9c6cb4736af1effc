"""The engine that rewrites texts, and what is proven and expected of its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lexveil.accounting import measurements
from lexveil.accounting.budgets import DEFAULT_FOUND, DocumentBudget
from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.measurements import Measurement
from lexveil.accounting.record import Guarantee
from lexveil.accounting.shares import ShareClasses
from lexveil.accounting.structure import StructureFigures
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.model import Model
from lexveil.artifacts.neighborhoods import key_of
from lexveil.artifacts.screened_words import is_screened, replacements, screened_words
from lexveil.errors import LexveilError, RequestError
from lexveil.logs import logger
from lexveil.mechanisms.registry import Mechanism
from lexveil.privatization.engine.batch import token_log_schema
from lexveil.privatization.engine.counts import BatchCounts
from lexveil.privatization.engine.worker import BatchWorker, Components, allocate
from lexveil.privatization.settings import Settings, progress_of
from lexveil.recovery.stored_curve import StoredCurve
from lexveil.types import Floats, Ids

LOG = logger(__name__)


class Engine:
    """Rewrites batches with the artifacts of a model; it reads neither a file of parameters nor the
    current folder.

    Raises:
        MissingArtifactError: if no run has made them.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """

    def __init__(self, settings: Settings, model: Model) -> None:
        if settings.sentences is not None:
            raise RequestError(
                f"strategy {settings.strategy} writes sentences and has no words to look at here; "
                "rewrite by `lexveil privatize` or lexveil.privatize"
            )
        self.settings = settings
        self.model = model
        self.lexicon = model.lexicon(settings.strategy)
        self.prepared = model.mechanism(settings.mechanism, settings.strategy, settings.policy)
        self.shares: ShareClasses | None = None
        if settings.shares is not None:
            self.shares = settings.shares.over(self.lexicon.tokens, self.lexicon.function_words)
            rows = self.vocabulary.rows
            functional = self.lexicon.function_words
            if settings.policy.stopwords != "perturb":  # these have no share then
                rows = rows[[self.lexicon.tokens[row] not in functional for row in rows.tolist()]]
            settings.shares.require_several(self.shares, rows)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that go into the mechanism and come out of it."""
        return self.prepared.vocabulary

    @property
    def instead(self) -> Ids | None:
        """(W,) the word that is written where each is drawn; None if it is always that word."""
        if not self.settings.screens or self.model.language != "en":
            return None
        return self.prepared.once("instead", self._instead)

    def _instead(self) -> Ids | None:
        vectors = self.vocabulary.vectors
        rows = self.vocabulary.rows.tolist()
        screened = is_screened([self.lexicon.tokens[row] for row in rows], screened_words().words)
        return replacements(vectors, screened, self.prepared.key or key_of(vectors))

    def made_with(self) -> dict[str, str]:
        """The sha256 of the artifacts that decide what comes out, by the names that a record gives
        them.
        """
        return self.model.hashes(self.settings.strategy) | self.prepared.hashes()

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
        """Return the measurement of the engine: which mechanism runs, and what is proven of it. The
        arguments are those of ``measurement_of``.
        """
        return measurement_of(
            self.settings, self.prepared.mechanism, budget, n_columns, withholds=withholds
        )

    def guarantee(self, measurement: Measurement, n_columns: int | None = 1) -> Guarantee:
        """The statement of a record."""
        structure = self.model.structure(self.settings.strategy, self.settings.policy)
        return guarantee_of(
            measurement, self.settings, self.prepared.mechanism, structure, n_columns
        )

    def described(self) -> dict[str, object]:
        """Further fields of a record than those that settings say."""
        return {}

    def recovery_curve(self) -> StoredCurve:
        """The expected recovery of these settings by epsilon, from a sample of the words."""
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
            LOG.warning(f"what epsilon means is not said: {error}")
            return None

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with these text columns."""
        # The first column adds nothing to a key, so that a file of one column is its own experiment
        # by any name.
        column_keys = ((), *((name,) for name in columns[1:]))
        components = Components(
            self.lexicon, self.vocabulary, self.prepared.mechanism, self.instead
        )
        log = tuple(token_log_schema(len(columns), self.settings).names)
        return BatchWorker(self.settings, components, tuple(columns), column_keys, self.shares, log)


def measurement_of(
    settings: Settings,
    mechanism: Mechanism,
    budget: DocumentBudget | None = None,
    n_columns: int | None = 1,
    *,
    withholds: bool = False,
) -> Measurement:
    """Return the measurement of settings: which mechanism runs, and what is proven of it.

    Args:
        budget: the budget that each document may spend; None where there are several.
        n_columns: text columns of a document; None where a column may find several texts.
        withholds: rows are left out where the ledger has nothing left for their subject.
    """
    token = measurements.of_token(mechanism)
    text = measurements.over_tokens(token, settings.policy, seed_is_known=settings.seed is not None)
    text = measurements.over_columns(text, n_columns)
    if settings.screens:
        text = measurements.with_screened_words(text)
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
    text = measurements.under_strategy(text, settings.strategy, settings.budget_source, budget)
    return measurements.with_rows_withheld(text) if withholds else text


def guarantee_of(
    measurement: Measurement,
    settings: Settings,
    mechanism: Mechanism,
    structure: StructureFigures | None,
    n_columns: int | None = 1,
) -> Guarantee:
    """The statement of a record; of an experiment, with that of a release with the same settings.

    There the noise would be the system's, and the budget a public number.
    """
    stated = measurement.guarantee(structure)
    if settings.mode != "experiment":
        return stated
    average = None if settings.average_words == "data" else settings.average_words
    cap = None if settings.max_token_epsilon == "none" else settings.max_token_epsilon
    in_release = replace(settings, seed=None, average_words=average, max_token_epsilon=cap)
    release = measurement_of(in_release, mechanism, n_columns=n_columns)
    return stated.model_copy(update={"in_release": release.guarantee(structure)})
