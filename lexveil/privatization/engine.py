"""Rewriting chunks of a user's rows with the artifacts that a run made: counted first, then rewritten, by any workers.

In release mode, the default, the noise comes from the operating system, is never repeatable, and the record states
the guarantee. With a seed the output is an experiment and stamped as one.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil import paths
from lexveil.accounting.budgets import (
    ACTIONS,
    SEGMENTATION_OF,
    STRATEGIES,
    Policy,
    budget_of_average,
    epsilon_per_token,
    spent_share,
)
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.mechanisms import prepare
from lexveil.config import load_params
from lexveil.errors import RequestError
from lexveil.formats.chunks import Chunk, Texts
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.count import count_planned, plan_tokens
from lexveil.privatization.rewrite import Rewritten, count_actions
from lexveil.privatization.rewriter import Batch, Rewriter
from lexveil.privatization.tally import Tally
from lexveil.runtime.pool import ordered_map
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import require
from lexveil.text.encode import KINDS, Lexicon, encode
from lexveil.types import Floats, Ids

B = TypeVar("B")

# What must have passed before a vocabulary is used, and the stage that says so.
CHECKED_BY = {"corpus.json": "check_corpus", "collocations.json": "check_collocations", "coverage.json": "check_vocab"}

LEAST = 1e-9  # epsilon; with much less, noise is beyond what a number can hold

TOKEN_LOG = pa.schema(
    [
        ("row", pa.int64()),
        ("position", pa.int32()),
        ("class", pa.dictionary(pa.int8(), pa.string())),
        ("epsilon", pa.float64()),
        ("action", pa.dictionary(pa.int8(), pa.string())),
        ("column", pa.dictionary(pa.int16(), pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows are to be rewritten. A row is a document: its texts share one budget.

    Attributes:
        epsilon: base epsilon per word; None if ``budget`` is given.
        budget: document budget B; None if ``epsilon`` is given.
        seed: None in release mode.
        consistent: replace equal tokens of a document alike, on one payment.
    """

    mechanism: str
    strategy: str
    epsilon: float | None
    budget: float | None
    seed: int | None
    policy: Policy
    keep_layout: bool
    consistent: bool = False

    @property
    def mode(self) -> Literal["none", "release", "experiment"]:
        """Whoever knows the seed can replay the noise."""
        if self.mechanism == "none":
            return "none"
        return "release" if self.seed is None else "experiment"


def make_settings(
    mechanism: str,
    strategy: str,
    *,
    epsilon: float | None = None,
    document_budget: float | None = None,
    mode: str = "release",
    seed: int | None = None,
    keep_layout: bool = False,
    stopwords: str | None = None,
    punctuation: str | None = None,
    oov: str | None = None,
    consistent: bool = False,
) -> Settings:
    """Check a request, and fill in what params.yaml says.

    Raises:
        RequestError: if it contradicts itself or is out of range.
    """
    if mechanism not in MECHANISMS and mechanism != "none":
        raise RequestError(
            f"--mechanism {mechanism}: there is no such mechanism; there are none, {', '.join(MECHANISMS)}"
        )
    if (mechanism == "none") != (strategy == "none"):
        raise RequestError(
            f"--mechanism {mechanism} --strategy {strategy}: give none for both to leave texts unchanged"
        )
    if mechanism == "none" and (epsilon, document_budget) != (None, None):
        raise RequestError("--mechanism none spends nothing; leave --epsilon and --document-budget out")
    if mechanism != "none" and (epsilon is None) == (document_budget is None):
        raise RequestError("give one of --epsilon (base epsilon per word) and --document-budget (budget of each text)")
    if strategy != "none" and strategy not in STRATEGIES:
        raise RequestError(f"--strategy {strategy}: there is no such strategy; there are none, {', '.join(STRATEGIES)}")
    if mode == "release" and seed is not None:
        raise RequestError("a seed makes an experiment; leave --mode release or --seed out")
    for name, value in (("--epsilon", epsilon), ("--document-budget", document_budget)):
        if value is not None and not 0 < value < float("inf"):
            raise RequestError(f"{name} {value}: must be finite and greater than 0")
        if value is not None and value < LEAST:
            raise RequestError(f"{name} {value}: must be at least {LEAST:g}, the unit in which the ledger counts")
    params = load_params()
    if mechanism == "none":
        return Settings("none", "none", None, None, None, Policy("keep", "keep", "keep"), True)
    policy = Policy.of(
        strategy,
        stopwords or params.policy.stopwords,
        punctuation or params.policy.punctuation,
        oov or params.policy.oov,
    )
    number = None if mode == "release" else params.seed if seed is None else seed
    return Settings(mechanism, strategy, epsilon, document_budget, number, policy, keep_layout, consistent)


def require_checks(strategy: str) -> None:
    """See to it that the artifacts are there and passed their checks. A check that failed has taken its record away:
    what did not pass is not used for a release.

    Raises:
        MissingArtifact: naming the command that makes them.
    """
    load_lexicon(SEGMENTATION_OF[strategy])
    _require_passed()


def _require_passed() -> None:
    for check, stage in CHECKED_BY.items():
        require(paths.CHECKS / check, stage)


@dataclass(frozen=True, slots=True)
class SelectedChunk:
    """A chunk, the name of its file (empty if there is one only), and which of its rows are to be released."""

    file: str
    chunk: Chunk
    keep: npt.NDArray[np.bool_]

    @classmethod
    def whole(cls, chunk: Chunk, file: str = "") -> SelectedChunk:
        """A chunk of which every row is to be released."""
        return cls(file, chunk, np.ones(len(chunk), dtype=bool))

    @property
    def texts(self) -> Texts:
        """The texts of all rows, none of those that are not to be released."""
        if self.keep.all():
            return self.chunk.texts
        nothing: list[str | None] = [None] * (len(self.chunk.texts[0]) if self.chunk.texts else 1)
        return [row if keep else nothing for row, keep in zip(self.chunk.texts, self.keep.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class FlatTexts:
    """The texts of consecutive rows, one after the other, without those that are not there.

    Attributes:
        owner: (n_texts,) the row of each text, from 0.
        column: (n_texts,) the text column of each.
        n_rows: how many rows.
    """

    texts: list[str]
    owner: Ids
    column: npt.NDArray[np.int16]
    n_rows: int

    @classmethod
    def of(cls, rows: Texts) -> FlatTexts:
        """Lay rows out."""
        width = len(rows[0]) if rows else 1
        there = [number for number, text in enumerate(text for row in rows for text in row) if text is not None]
        at = np.array(there, dtype=np.int64)
        texts = [text for row in rows for text in row if text is not None]
        return cls(texts, at // width, (at % width).astype(np.int16), len(rows))

    def rows(self, texts: Sequence[str], width: int) -> Texts:
        """The same rows with other texts."""
        found: Texts = [[None] * width for _ in range(self.n_rows)]
        for text, row, column in zip(texts, self.owner.tolist(), self.column.tolist(), strict=True):
            found[row][column] = text
        return found


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """What a chunk holds, before any noise is drawn.

    Attributes:
        counts: (4, n_rows) words, tokens, tokens that pay, words in those.
        by_class: (4, 4) tokens of each class that meet each action.
        documents: rows in which there is any text.
        texts: texts in them.
    """

    counts: Ids
    by_class: Ids
    documents: int
    texts: int


@dataclass(frozen=True, slots=True)
class ChunkCounter:
    """Counts a chunk, in whatever process it finds itself."""

    lexicon: Lexicon
    number: Ids
    policy: Policy
    consistent: bool

    def __call__(self, item: tuple[str, int, Texts]) -> ChunkCounts:
        """Count the texts of a chunk."""
        flat = FlatTexts.of(item[2])
        encoded = encode(flat.texts, self.lexicon)
        plan = plan_tokens(encoded, self.number, self.policy, flat.owner if self.consistent else None)
        counts = count_planned(encoded, plan, flat.owner, flat.n_rows)
        documents = len(np.unique(flat.owner))
        return ChunkCounts(counts, count_actions(encoded.kind, plan.action), documents, len(flat.texts))


@dataclass(frozen=True, slots=True)
class RewrittenChunk:
    """What a worker gives back of a chunk: no source text.

    Attributes:
        texts: of each row.
        ledger: of each token.
        spent: (n_rows,) epsilon spent on each row.
        counts: as in ``ChunkCounts``.
    """

    texts: Texts
    ledger: pa.Table
    tally: Tally
    spent: Floats
    counts: Ids


@dataclass(frozen=True, slots=True)
class ChunkRewriter:
    """Rewrites a chunk and accounts for it, in whatever process it finds itself.

    Attributes:
        budget: of each document.
        columns: the names of the text columns.
    """

    rewriter: Rewriter
    strategy: str
    budget: float
    columns: tuple[str, ...]
    consistent: bool

    def __call__(self, item: tuple[str, int, Texts]) -> RewrittenChunk:
        """Rewrite, and leave what holds source text behind."""
        file, first, rows = item
        flat, tally = FlatTexts.of(rows), Tally()
        encoded = encode(flat.texts, self.rewriter.lexicon)
        number = self.rewriter.vocabulary.number
        plan = plan_tokens(encoded, number, self.rewriter.policy, flat.owner if self.consistent else None)
        counts = count_planned(encoded, plan, flat.owner, flat.n_rows)
        per_token = epsilon_per_token(self.strategy, self.budget, counts[2], counts[3])
        keys = [
            (*((file,) if file else ()), str(first - 1 + row), *((self.columns[column],) if column else ()))
            for row, column in zip(flat.owner.tolist(), flat.column.tolist(), strict=True)
        ]
        done = self.rewriter(Batch(flat.texts, per_token[flat.owner], keys), (encoded, plan))
        tally.add(done, len(np.unique(flat.owner)), self.rewriter.vocabulary)
        spent = np.bincount(flat.owner, weights=done.per_text(done.epsilon), minlength=flat.n_rows).astype(np.float64)
        return RewrittenChunk(
            flat.rows(done.texts, len(self.columns)), self._ledger(done, flat, first), tally, spent, counts
        )

    def _ledger(self, done: Rewritten, flat: FlatTexts, first: int) -> pa.Table:
        of = done.encoded.text_of
        return pa.table(
            [
                pa.array(flat.owner[of] + first),
                pa.array(done.position),
                pa.DictionaryArray.from_arrays(done.encoded.kind, pa.array(KINDS)),
                pa.array(done.epsilon),
                pa.DictionaryArray.from_arrays(done.action, pa.array(ACTIONS)),
                pa.DictionaryArray.from_arrays(flat.column[of], pa.array(self.columns, pa.string())),
            ],
            schema=TOKEN_LOG,
        )


@dataclass(slots=True)
class InputTotals:
    """What a whole input holds, added up chunk by chunk.

    Attributes:
        totals: words, tokens, tokens that pay, words in those.
        by_class: (4, 4) tokens of each class that meet each action.
        documents: rows in which there is any text.
    """

    rows: int
    documents: int
    texts: int
    totals: Ids
    by_class: Ids

    @classmethod
    def empty(cls) -> InputTotals:
        """Nothing yet."""
        return cls(0, 0, 0, np.zeros(4, dtype=np.int64), np.zeros((len(KINDS), len(ACTIONS)), dtype=np.int64))

    def add(self, counted: ChunkCounts) -> None:
        """Add what a chunk holds."""
        self.rows += counted.counts.shape[1]
        self.documents += counted.documents
        self.texts += counted.texts
        self.totals += counted.counts.sum(axis=1)
        self.by_class += counted.by_class


class Engine:
    """Everything that rewriting takes beside the rows, loaded from the artifacts.

    Raises:
        MissingArtifact: if no run has made them, or they did not pass their checks, as ``require_checks``.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.segmentation = SEGMENTATION_OF[settings.strategy]
        params = load_params()
        self.lexicon = load_lexicon(self.segmentation)
        _require_passed()
        self.prepared = prepare(
            settings.mechanism, self.segmentation, load_embedding(self.segmentation), settings.policy, params.mechanisms
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that go into the mechanism and come out of it."""
        return self.prepared.vocabulary

    def made_with(self) -> dict[str, Path]:
        """The artifacts that decide what comes out, by the names that a record gives them."""
        files = {name: paths.embedding(self.segmentation) / name for name in ("words.txt", "vectors.npy")}
        if self.segmentation != "word":
            files |= {name: paths.COLLOCATIONS / name for name in ("bigrams.parquet", "trigrams.parquet")}
        return files | self.prepared.files

    def budget(self, survey: InputTotals) -> float:
        """The budget B of each document, from the words of the average one where a base epsilon was given."""
        if self.settings.budget is not None:
            return self.settings.budget
        assert self.settings.epsilon is not None
        return budget_of_average(self.settings.epsilon, int(survey.totals[0]), survey.documents)

    def shares(self, counted: ChunkCounts) -> Floats:
        """(n_rows,) what each row spends, as a share of the document budget."""
        return spent_share(self.settings.strategy, counted.counts[2], counted.counts[3])

    def count(
        self, chunks: Iterable[SelectedChunk], workers: int, progress: Progress
    ) -> Iterator[tuple[SelectedChunk, ChunkCounts]]:
        """Count chunks, in order."""
        counter = ChunkCounter(self.lexicon, self.vocabulary.number, self.settings.policy, self.settings.consistent)
        for held, counted in _beside(counter, chunks, workers):
            progress.advance(len(held.chunk), int(counted.counts[1].sum()))
            yield held, counted

    def rewrite(
        self, chunks: Iterable[SelectedChunk], columns: Sequence[str], budget: float, workers: int, progress: Progress
    ) -> Iterator[tuple[SelectedChunk, RewrittenChunk]]:
        """Rewrite what is to be released of chunks, in order."""
        one = self.settings
        names = (one.mechanism, one.strategy, repr(budget))
        rewriter = Rewriter(
            self.lexicon, self.vocabulary, self.prepared.mechanism, one.policy, names, one.seed, one.keep_layout
        )
        worker = ChunkRewriter(rewriter, one.strategy, budget, tuple(columns), one.consistent)
        for held, part in _beside(worker, chunks, workers):
            progress.advance(len(held.chunk), len(part.ledger))
            yield held, part


def _beside(
    function: Callable[[tuple[str, int, Texts]], B], chunks: Iterable[SelectedChunk], workers: int
) -> Iterator[tuple[SelectedChunk, B]]:
    """Each chunk and what ``function`` makes of its texts. What else is in a row stays in this process."""
    waiting: deque[SelectedChunk] = deque()

    def items() -> Iterator[tuple[str, int, Texts]]:
        for held in chunks:
            waiting.append(held)
            yield held.file, held.chunk.first, held.texts

    with closing(ordered_map(function, items(), workers)) as results:
        for result in results:
            yield waiting.popleft(), result


def say_progress(what: str, total: int, unit: str) -> Progress:
    """Progress on standard error: standard output may be the text."""
    return Progress(what, total, unit, stream=sys.stderr)
