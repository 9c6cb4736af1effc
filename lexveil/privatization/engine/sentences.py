"""Texts as sentences of a public bank: how they are cut into units, what is drawn for them, and
what is proven of it.

The engine is that of words but for the cut and the look-up: a unit (a text, or each sentence of it)
has a vector of its own, and what is drawn for it is a sentence of the bank. Batches, budgets,
counts, token logs and records are those of any run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil.accounting import measurements
from lexveil.accounting.budgets import Action, DocumentBudget
from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.measurements import Measurement, SentenceMeasurement
from lexveil.accounting.record import Guarantee, SentencesRecord
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.mechanisms import Prepared
from lexveil.artifacts.model import Model
from lexveil.artifacts.sentence_banks import CARD, SentenceBank, bank_of, open_bank
from lexveil.embeddings.sentences import SentenceSpace, Units
from lexveil.errors import RequestError, option
from lexveil.mechanisms.sentence_draws import SentenceDraws
from lexveil.privatization.engine.batch import Batch, Rewritten, token_log_schema
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.engine.plan import TokenPlan, count_planned
from lexveil.privatization.engine.worker import BatchWorker, allocate
from lexveil.privatization.settings import Sentences, Settings, document_budget
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.text.strings import Strings
from lexveil.types import Floats, Ids, Int64, Words

LONGEST = 60  # words of a sentence of a text; a longer one is cut, as where nobody wrote full stops


class SentenceEngine(Engine):
    """Rewrites batches as sentences of a bank.

    Raises:
        RequestError: if the bank cannot be used with the model, or in a release is not said to be
            public.
    """

    def __init__(self, settings: Settings, model: Model) -> None:
        assert settings.sentences is not None
        self.settings = settings
        self.model = model
        self.shares = None
        self.wanted: Sentences = settings.sentences
        self.lexicon = model.lexicon(settings.of_words)
        named = self.wanted.bank
        self.bank = open_bank(bank_of(model) if named is None else Path(named), model)
        if settings.mode == "release" and not self.bank.card.public:
            raise RequestError(
                f"nothing is released: the bank {self.bank.folder} is not said to be public, and "
                "what follows from private texts must not shape what comes out; build it of "
                "public ones by `lexveil sentences build --public`, or with params.yaml: "
                f"sentences.public: true, or say {option('mode')} experiment"
            )
        beta = model.params.mechanisms.tem.beta
        space = self.bank.space
        mechanism = SentenceDraws(self.bank.vectors, space.radius, beta)
        self.prepared = Prepared(
            mechanism=mechanism,
            vocabulary=_no_words(self.lexicon, space),
            parameters={"beta": beta},
            files={f"bank/{CARD}": self.bank.folder / CARD},
        )

    @property
    def instead(self) -> None:
        """None, because a bank is built without sentences that have a screened word."""
        return

    def made_with(self) -> dict[str, str]:
        """The sha256 of the artifacts that decide what comes out."""
        return self.model.hashes(self.settings.of_words) | self.prepared.hashes()

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
        text = self._over_columns(budget or document_budget(self.settings, self.model), n_columns)
        if self.settings.seed is not None:
            text = measurements.with_known_seed(text)
        return measurements.with_rows_withheld(text) if withholds else text

    def _measured(self, budget: DocumentBudget, n_columns: int = 1) -> SentenceMeasurement:
        return measurements.of_sentences(
            measurements.of_token(self.prepared.mechanism),
            self.wanted.per_text,
            n_columns,
            diameter=self.bank.space.diameter,
            budget=budget,
            longest=LONGEST,
        )

    def _over_columns(self, budget: DocumentBudget, n_columns: int | None) -> Measurement:
        assert n_columns is not None  # a column that finds several texts is refused
        text: Measurement = self._measured(budget, n_columns)
        if self.settings.empties_scripts:
            text = measurements.with_scripts_emptied(text)
        return measurements.over_columns(text, n_columns)

    def guarantee(self, measurement: Measurement, n_columns: int | None = 1) -> Guarantee:
        """The statement of a record; of an experiment, with that of a release."""
        stated = measurement.guarantee()
        if self.settings.mode != "experiment":
            return stated
        budget = document_budget(self.settings, self.model, n_columns=n_columns or 1)
        release = self._over_columns(budget, n_columns)
        return stated.model_copy(update={"in_release": release.guarantee()})

    def described(self) -> dict[str, object]:
        """The fields of a record that say which sentences are written."""
        measured = self._measured(document_budget(self.settings, self.model))
        wanted = self.wanted
        return {
            "sentences": SentencesRecord(
                unit=wanted.unit,
                per_text=wanted.per_text,
                longest=LONGEST if wanted.per_text is None else None,
                bank=self.bank.sha256,
                bank_sentences=len(self.bank),
                diameter=measured.diameter,
                local_epsilon=measured.local_epsilon,
            )
        }

    def meaning(self, least: float, most: float) -> Meaning | None:
        """Return None: it is not worked out what a reader names."""
        del least, most
        return None

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with these text columns."""
        return SentenceWorker(
            settings=self.settings,
            components=None,
            columns=tuple(columns),
            column_keys=((), *((name,) for name in columns[1:])),
            log=tuple(token_log_schema(len(columns), self.settings).names),
            sentences=SentenceComponents.of(self.lexicon, self.bank, self.prepared.mechanism),
        )


@dataclass(frozen=True, slots=True, repr=False)
class SentenceComponents:
    """The components with which sentences are drawn. They hold no generator, so no two processes
    can share one.

    Attributes:
        lexicon: cuts and looks up texts.
        space: gives vectors to units.
        texts, n_words: the texts and the numbers of words of the sentences of the bank.
    """

    lexicon: Lexicon
    space: SentenceSpace
    mechanism: SentenceDraws
    texts: Strings
    n_words: Ids

    @classmethod
    def of(cls, lexicon: Lexicon, bank: SentenceBank, mechanism: object) -> SentenceComponents:
        """Return the components of a bank."""
        assert isinstance(mechanism, SentenceDraws)
        return cls(lexicon, bank.space, mechanism, bank.texts, bank.n_words)


@dataclass(frozen=True)
class SentenceWorker(BatchWorker):
    """Counts batches and rewrites them as sentences, in any process; a draw is a token."""

    sentences: SentenceComponents | None = None

    def plan(self, batch: Batch) -> tuple[Encoded, TokenPlan]:
        """The draws for a batch, as tokens of its texts that are all perturbed."""
        encoded, plan, _ = self._planned(batch)
        return encoded, plan

    def _planned(self, batch: Batch) -> tuple[Encoded, TokenPlan, Units]:
        assert self.sentences is not None
        assert self.settings.sentences is not None
        source = encode(batch.texts, self.sentences.lexicon)
        units, text_of, draws = cut(source, self.settings.sentences.per_text)
        n = len(text_of)
        words = source.n_words * (source.kind != TokenClass.PUNCTUATION.value)
        per_unit = _totals(words, units.starts)
        # the words of a unit are those of its first draw
        is_first = np.append(True, np.diff(draws) > 0)[:n]
        encoded = replace(
            source,
            text_of=text_of.astype(np.int32),
            rows=np.full(n, -1, dtype=np.int64),
            kind=np.full(n, TokenClass.SENTENCE.value, dtype=np.int8),
            n_words=np.where(is_first, per_unit[draws], 0).astype(np.int32),
            first_word=np.zeros(n, dtype=np.int64),
        )
        action = np.full(n, Action.PERTURBED.value, dtype=np.int8)
        return encoded, TokenPlan(known=draws, action=action, leader=None), units

    def draw(self, batch: Batch, budget: DocumentBudget | None = None) -> Rewritten:
        """Rewrite the texts of a batch, without accounting."""
        assert self.sentences is not None
        assert budget is not None
        encoded, plan, units = self._planned(batch)
        counts = count_planned(encoded, plan, batch.document, len(batch))
        epsilon = allocate(self.settings.strategy, budget, counts)[batch.document][encoded.text_of]
        mechanism = self.sentences.mechanism
        queries = self.sentences.space.embed(units)
        noise = self._noise(batch, budget, encoded, epsilon)
        rows = mechanism.replace_queries(queries, plan.known, epsilon, noise)
        texts = _joined(self.sentences.texts, rows, encoded)
        n_words = self.sentences.n_words[rows].astype(np.int8)
        return Rewritten(encoded, plan, texts, epsilon, rows, n_words)

    def _noise(
        self, batch: Batch, budget: DocumentBudget, encoded: Encoded, epsilon: Floats
    ) -> Words:
        """The keys of all draws; of an experiment, those of each text by its own generator."""
        assert self.sentences is not None
        mechanism = self.sentences.mechanism
        generator = self._generator(batch, self.budget_name or repr(budget.total))
        if isinstance(generator, np.random.Generator):
            return mechanism.noise(epsilon, generator)
        keys = [
            mechanism.noise(epsilon[start:stop], generator(text))
            for text, (start, stop) in enumerate(pairwise(encoded.offsets().tolist()))
        ]
        return np.concatenate([mechanism.noise(epsilon[:0], np.random.default_rng(0)), *keys])


def cut(source: Encoded, per_text: int | None) -> tuple[Units, Ids, Ids]:
    """The units of texts, and for each draw its text and its unit.

    Args:
        per_text: draws for a text, which is a unit then; None takes each sentence for a unit, or
            each part of ``LONGEST`` words of a longer one, and draws once for it.
    """
    if per_text is not None:
        units = Units(source.rows, source.offsets())
        draws = np.repeat(np.arange(source.n_texts), per_text)
        return units, draws, draws
    sentence = source.sentence_of
    part = (source.first_word - source.sentence_offsets[sentence]) // LONGEST
    is_first = np.append(True, (np.diff(sentence) > 0) | (np.diff(part) > 0))[: len(sentence)]
    starts = np.append(np.flatnonzero(is_first), len(sentence)).astype(np.int64)
    units = Units(source.rows, starts)
    return units, source.text_of[starts[:-1]].astype(np.int64), np.arange(len(units))


def _totals(values: Ids, starts: Int64) -> Int64:
    """The sum of the values of each unit."""
    before = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    totals: Int64 = np.diff(before[starts])
    return totals


def _joined(sentences: Strings, rows: Ids, encoded: Encoded) -> Strings:
    """The texts of drawn sentences, one after the other with spaces between."""
    drawn = sentences.array.take(pa.array(rows)).to_pylist()
    texts = [" ".join(drawn[start:stop]) for start, stop in pairwise(encoded.offsets().tolist())]
    return Strings(pa.array(texts, pa.large_string()))


def _no_words(lexicon: Lexicon, space: SentenceSpace) -> Vocabulary:
    """No word comes out of itself."""
    none = np.zeros(0, dtype=np.int64)
    number = np.full(len(lexicon.tokens), -1, dtype=np.int64)
    return Vocabulary(none, number, np.zeros((0, space.dimensions), dtype=np.float32))


def engine_of(settings: Settings, model: Model) -> Engine:
    """Return the engine of words or of sentences that rewrites texts by these settings."""
    if settings.sentences is not None:
        return SentenceEngine(settings, model)
    return Engine(settings, model)
