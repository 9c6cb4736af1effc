"""Rewriting of texts by replacing them with sentences drawn from a public sentence bank: division
into units, noisy draws, and proven bounds.

Only the division and the look-up differ from the engine that replaces words. A unit is a text, or
each sentence of a text. It has one vector, and the mechanism draws a sentence of the bank for the
unit. Batches, budgets, counts, token logs and records are the same as in any run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.errors import RequestError, option
from lexveil.base.types import Floats, Ids, Int32, Int64, ModelRows, Noise, WordNumbers
from lexveil.core.accounting import measurements
from lexveil.core.accounting.budgets import Action, DocumentBudget
from lexveil.core.accounting.changes import Fate, TextChanges
from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.core.accounting.measurements import Measurement, SentenceMeasurement
from lexveil.core.accounting.record import SentencesRecord
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.sentences import CutTexts, SentenceSpace, Units
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.over_sentences import sentence_mechanism
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.core.text.strings import Strings
from lexveil.io.artifacts.default_bank import open_wanted
from lexveil.io.artifacts.levels import CARD, CARD_IN_RECORDS
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.screened_words import listed_words
from lexveil.io.artifacts.sentence_banks import SentenceBank
from lexveil.readers.linkage import DisclosedTexts
from lexveil.release.engine.batch import Batch, Rewritten, token_log_schema
from lexveil.release.engine.engine import Engine, WordEngine, column_keys
from lexveil.release.engine.plan import TokenPlan, count_planned
from lexveil.release.engine.worker import BatchWorker, allocate
from lexveil.release.settings import Sentences, Settings, document_budget

BETA = "beta"  # the only parameter of tem for sentences
TRIED_DRAWS = 2_000  # draws that estimate the likely sentences if there is no closed form
WORDS_OF_A_SENTENCE = (
    # largest number of words of a sentence of a text; a longer sentence, as in a text without full
    # stops, is cut
    60
)


class SentenceEngine(Engine):
    """Engine that rewrites texts by replacing them with sentences of a sentence bank.

    Raises:
        RequestError: if the sentence bank cannot be used with the model, or if a release uses a
            sentence bank that was not declared public.
    """

    def __init__(self, settings: Settings, model: Model) -> None:
        assert settings.sentences is not None
        self.settings = settings
        self.model = model
        self.wanted: Sentences = settings.sentences
        self.lexicon = model.lexicon(settings.of_words)
        self.bank = open_wanted(self.wanted.bank, model)
        if settings.mode == "release" and not self.bank.card.public:
            raise RequestError(
                f"nothing is released: the bank {self.bank.folder} is not declared public, "
                "and a bank of private texts would disclose them in outputs; build it of "
                "public texts by `lexveil sentences build --public`, or with params.yaml: "
                f"sentences.public: true, or add {option('mode')} experiment"
            )
        _require_screened(self.bank, settings.screen)
        self.prepared = model.once(
            ("draws", self.wanted.bank, settings.mechanism), self._prepare
        ).fresh()

    def _prepare(self) -> Prepared:
        name = self.settings.mechanism
        params = self.model.params.mechanisms
        space = self.bank.space
        given = params.model_dump()[name]
        shown = getattr(params, name).model_dump(by_alias=True)
        if name == SentenceDraws.name:  # sentences have no lengths in words
            given = {BETA: params.tem.beta}
            shown = given
        return Prepared(
            mechanism=sentence_mechanism(name, self.bank.vectors, space.radius, given),
            vocabulary=_no_words(self.lexicon, space),
            parameters=shown,
            files={CARD_IN_RECORDS: self.bank.folder / CARD},
        )

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that draws sentences for vectors."""
        return self.prepared.mechanism

    def _measured(self, budget: DocumentBudget, n_columns: int = 1) -> SentenceMeasurement:
        return measurements.of_sentences(
            measurements.of_token(self.mechanism),
            self.wanted.per_text,
            n_columns,
            diameter=self.bank.space.diameter * self.mechanism.stretch,
            budget=budget,
            longest=WORDS_OF_A_SENTENCE,
        )

    def _proven(
        self, settings: Settings, budget: DocumentBudget | None, n_columns: int | None
    ) -> Measurement:
        assert n_columns is not None  # a column with several texts per row is refused
        budget = budget or document_budget(settings, self.model).times(n_columns)
        text: Measurement = self._measured(budget, n_columns)
        if settings.empties_scripts:
            text = measurements.with_scripts_emptied(text)
        text = measurements.over_columns(text, n_columns)
        return text if settings.seed is None else measurements.with_known_seed(text)

    def described(self) -> dict[str, object]:
        """Return the fields of a privacy record that describe the sentence bank and the units."""
        measured = self._measured(document_budget(self.settings, self.model))
        wanted = self.wanted
        screen = self.bank.card.screen
        screened = {"screen": screen} if screen.parts else {}
        return screened | {
            "sentences": SentencesRecord(
                unit=wanted.unit,
                per_text=wanted.per_text,
                longest=WORDS_OF_A_SENTENCE if wanted.per_text is None else None,
                bank=self.bank.sha256,
                bank_sentences=len(self.bank),
                diameter=measured.diameter,
                local_epsilon=measured.local_epsilon,
            )
        }

    def disclosed(self, texts: Sequence[str]) -> DisclosedTexts:
        """Return the structure that the outputs of some texts would disclose: the number of
        sentences of each text if each sentence is replaced, and otherwise nothing.
        """
        _, text_of, _ = cut(encode(texts, self.lexicon), self.wanted.per_text)
        drawn = np.bincount(text_of, minlength=len(texts))
        starts = np.concatenate([[0], np.cumsum(drawn)])
        is_number = self.wanted.per_text is None
        keys = [b"%d" % n if is_number else b"" for n in drawn]
        return DisclosedTexts(starts, keys, WordNumbers(np.full(len(text_of), -1)))

    def meaning(self, least: float, most: float) -> Meaning | None:  # noqa: ARG002
        """Return sentences on how much weaker the protection becomes by each purpose (a scale such
        as sentiment that the metric preserves), or None without a purpose.
        """
        said = [
            f"Less hidden, by the purpose {purpose}: where a text stands on it. The output follows "
            f"the text on this scale with weight {purpose.weight:g}, and in everything else "
            "together with weight 1."
            for purpose in self.model.purposes
        ]
        return Meaning(at=[], sentences=said) if said else None

    def likeliest(self, text: str, number: int, epsilon: float, n: int) -> list[tuple[str, float]]:
        """Return the n likeliest replacement sentences for one unit of a text, with their
        probabilities.

        A mechanism without a closed form estimates the probabilities by frequencies in
        ``TRIED_DRAWS`` draws.

        Args:
            number: index of the unit (the text or a sentence of it), from 0.
        """
        units, _, _ = cut(encode([text], self.lexicon), self.wanted.per_text)
        query = self.bank.space.embed(units)[number : number + 1]
        mechanism = self.mechanism
        if mechanism.has_closed_form():
            chances = np.exp(mechanism.log_pmf_of(query, np.array([epsilon]))[0])
        else:
            spent = np.full(TRIED_DRAWS, epsilon)
            noise = mechanism.noise(spent, stream(0, "likeliest"))
            of = np.zeros(TRIED_DRAWS, dtype=np.int64)
            drawn = mechanism.replace_queries(query, of, spent, noise)
            chances = np.bincount(drawn, minlength=mechanism.size) / TRIED_DRAWS
        rows = np.argsort(-chances, kind="stable")[:n].tolist()
        return [(self.bank.texts[row], float(chances[row])) for row in rows]

    def worker(self, columns: Sequence[str] = ("text",)) -> BatchWorker:
        """Return the worker that counts and rewrites documents with the given text columns."""
        return SentenceWorker(
            settings=self.settings,
            components=None,
            columns=tuple(columns),
            column_keys=column_keys(columns),
            log=tuple(token_log_schema(len(columns), self.settings).names),
            sentences=SentenceComponents.of(self.lexicon, self.bank, self.mechanism),
        )


@dataclass(frozen=True, slots=True, repr=False)
class SentenceComponents:
    """The parts that a worker needs to draw sentences. They contain no random generator, so that
    processes cannot share one.

    Attributes:
        lexicon: the lexicon that tokenizes texts.
        space: the embedding of texts and sentences.
        texts, n_words: the text of each sentence of the bank, and its number of words.
    """

    lexicon: Lexicon
    space: SentenceSpace
    mechanism: Mechanism
    texts: Strings
    n_words: Ids

    @classmethod
    def of(cls, lexicon: Lexicon, bank: SentenceBank, mechanism: Mechanism) -> SentenceComponents:
        """Create the parts that a worker needs, from a sentence bank and a mechanism."""
        return cls(lexicon, bank.space, mechanism, bank.texts, bank.n_words)


@dataclass(frozen=True)
class SentenceWorker(BatchWorker):
    """Worker that counts batches and rewrites them as sentences, in any process. Each drawn
    sentence counts as one token.
    """

    sentences: SentenceComponents | None = None

    def plan(self, batch: Batch) -> tuple[Encoded, TokenPlan]:
        """Return the draws for a batch in the form of tokens, all of which are perturbed, and their
        plan.
        """
        _, _, encoded, plan = self._planned(batch)
        return encoded, plan

    def _planned(self, batch: Batch) -> tuple[Encoded, Units, Encoded, TokenPlan]:
        """Return the words of a batch, the units that they form, the draws for these units in the
        form of tokens, and the plan of the draws.
        """
        assert self.sentences is not None
        assert self.settings.sentences is not None
        source = encode(batch.texts, self.sentences.lexicon)
        units, text_of, draws = cut(source, self.settings.sentences.per_text)
        n = len(text_of)
        words = source.n_words * (source.kind != TokenClass.PUNCTUATION.value)
        per_unit = _totals(words, units.starts)
        # the words of a unit are stored with its first draw
        is_first = np.append(True, np.diff(draws) > 0)[:n]
        encoded = replace(
            source,
            text_of=text_of.astype(np.int32),
            rows=ModelRows(np.full(n, -1, dtype=np.int64)),
            kind=np.full(n, TokenClass.SENTENCE.value, dtype=np.int8),
            n_words=np.where(is_first, per_unit[draws], 0).astype(np.int32),
            first_word=np.zeros(n, dtype=np.int64),
        )
        action = np.full(n, Action.PERTURBED.value, dtype=np.int8)
        return (
            source,
            units,
            encoded,
            TokenPlan(known=WordNumbers(draws), action=action, leader=None),
        )

    def draw(self, batch: Batch, budget: DocumentBudget | None = None) -> Rewritten:
        """Rewrite the texts of a batch, without counting tokens or spent epsilon."""
        assert self.sentences is not None
        assert budget is not None
        source, units, encoded, plan = self._planned(batch)
        counts = count_planned(encoded, plan, batch.document, len(batch))
        epsilon = allocate(self.settings.strategy, budget, counts)[batch.document][encoded.text_of]
        mechanism = self.sentences.mechanism
        queries = self.sentences.space.embed(units)
        noise = self._noise(batch, budget, encoded, epsilon)
        rows = mechanism.replace_queries(queries, plan.known, epsilon, noise)
        drawn = Strings(self.sentences.texts.array.take(pa.array(rows)))
        return RewrittenSentences(
            encoded=encoded,
            plan=plan,
            texts=_joined(drawn, encoded),
            token_epsilon=epsilon,
            rows=ModelRows(rows),
            out_words=self.sentences.n_words[rows].astype(np.int8),
            source=source,
            units=units,
            drawn=drawn,
            n_in_bank=count_in_bank(source, batch.texts, self.sentences.texts),
        )

    def _noise(
        self, batch: Batch, budget: DocumentBudget, encoded: Encoded, epsilon: Floats
    ) -> Noise:
        """Return the noise for all draws of a batch. In an experiment each text has its own random
        generator.
        """
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


@dataclass(frozen=True, repr=False, kw_only=True)
class RewrittenSentences(Rewritten):
    """The result of rewriting a batch as sentences; each drawn sentence counts as one token.

    Attributes:
        source: the words of the texts.
        units: the units that are replaced: texts or sentences.
        drawn: (n,) index in the sentence bank of the sentence that each draw gave.
    """

    source: Encoded
    units: Units
    drawn: Strings

    def changes(self, texts: Sequence[str], lexicon: Lexicon) -> list[TextChanges]:
        """Return the changes of each text: each unit (the text or a sentence of it) with the
        sentences that replace it.
        """
        del lexicon
        drawn = self.plan.known
        is_first = np.append(True, np.diff(drawn) > 0)[: len(drawn)]
        source_spans = np.where(is_first[:, None], self._unit_spans()[drawn], np.int32(-1))
        lengths = np.array([len(sentence) for sentence in self.drawn], dtype=np.int32)
        found = list[TextChanges]()
        for text, (start, stop) in enumerate(pairwise(self.encoded.offsets().tolist())):
            # a space between two sentences
            ends = np.cumsum(lengths[start:stop] + 1, dtype=np.int32) - 1
            spans = np.stack([ends - lengths[start:stop], ends], axis=1)
            fates = [Fate.REPLACED] * (stop - start)
            source = source_spans[start:stop]
            found.append(TextChanges(texts[text], self.texts[text], fates, source, spans))
        return found

    def _unit_spans(self) -> Int32:
        """The character range of each unit in its text, from its first word to its last, shape
        (n_units, 2). The range is (0, 0) for a text without words.
        """
        source = self.source
        starts = self.units.starts
        spans = np.zeros((len(self.units), 2), dtype=np.int32)
        has_words = np.diff(starts) > 0
        last = starts[1:][has_words] - 1
        last_word = source.first_word[last] + source.n_words[last] - 1
        spans[has_words, 0] = source.spans[source.first_word[starts[:-1][has_words]], 0]
        spans[has_words, 1] = source.spans[last_word, 1]
        return spans


def cut(source: Encoded, per_text: int | None) -> tuple[Units, Ids, Ids]:
    """Divide texts into the units to replace. Return the units, and for each draw its text and its
    unit.

    Args:
        per_text: number of draws for a text, if a whole text is the unit. If None, each sentence is
            a unit with one draw, and a sentence longer than ``WORDS_OF_A_SENTENCE`` words is cut
            into several units.
    """
    sentence = source.sentence_of
    part = (source.first_word - source.sentence_offsets[sentence]) // WORDS_OF_A_SENTENCE
    is_first = np.append(True, (np.diff(sentence) > 0) | (np.diff(part) > 0))[: len(sentence)]
    starts = np.append(np.flatnonzero(is_first), len(sentence)).astype(np.int64)
    texts = Units(source.rows, source.offsets())
    return CutTexts(texts, Units(source.rows, starts)).draws(per_text)


def count_in_bank(source: Encoded, texts: Sequence[str], bank: Strings) -> int:
    """Return the number of sentences of some texts that occur unchanged in the sentence bank."""
    sentence = source.sentence_of
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    ends = np.append(starts[1:], len(sentence))[: len(starts)] - 1
    last_word = source.first_word[ends] + source.n_words[ends] - 1
    first = source.spans[source.first_word[starts], 0].tolist()
    after = source.spans[last_word, 1].tolist()
    whole = list(texts)
    places = zip(source.text_of[starts].tolist(), first, after, strict=True)
    found = [whole[text][begin:end] for text, begin, end in places]
    is_there = pc.is_in(pa.array(found, bank.array.type), value_set=bank.array)
    return int(pc.sum(is_there).as_py() or 0)


def _totals(values: Ids, starts: Int64) -> Int64:
    """Sum values over each unit."""
    before = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    totals: Int64 = np.diff(before[starts])
    return totals


def _joined(drawn: Strings, encoded: Encoded) -> Strings:
    """Join the drawn sentences of each text with spaces, and return the texts."""
    sentences = drawn.array.to_pylist()
    bounds = pairwise(encoded.offsets().tolist())
    texts = [" ".join(sentences[start:stop]) for start, stop in bounds]
    return Strings(pa.array(texts, pa.large_string()))


def _require_screened(bank: SentenceBank, parts: Sequence[str]) -> None:
    """Check that a sentence bank was built without the words in the given parts of the public list
    of unwanted words.

    Raises:
        RequestError: if a sentence of the bank may contain such a word.
    """
    card = bank.card
    left = [part for part in parts if part not in card.screen.parts]
    if parts and card.screen.sha256 != listed_words().sha256:
        left = [*parts]
    if left:
        said = ",".join(dict.fromkeys([*card.screen.parts, *left]))
        raise RequestError(
            f"{option('screen')} {','.join(parts)}: the bank {bank.folder} may have "
            f"sentences with words of the parts {', '.join(left)}; build the bank again by "
            f"`lexveil sentences build --screen {said}`, or remove {option('screen')}"
        )


def _no_words(lexicon: Lexicon, space: SentenceSpace) -> Vocabulary:
    """Return a vocabulary without words, for an engine that writes sentences."""
    none = np.zeros(0, dtype=np.int64)
    number = np.full(len(lexicon.tokens), -1, dtype=np.int64)
    return Vocabulary(
        ModelRows(none), WordNumbers(number), np.zeros((0, space.dimensions), dtype=np.float32)
    )


def engine_of(settings: Settings, model: Model) -> Engine:
    """Return the engine that rewrites texts by the given settings, a ``WordEngine`` or a
    ``SentenceEngine``.
    """
    if settings.sentences is not None:
        return SentenceEngine(settings, model)
    return WordEngine(settings, model)
