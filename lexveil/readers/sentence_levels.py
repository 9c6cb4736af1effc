"""Levels of protection of texts that are written as sentences of a bank: the largest epsilon at
which a reader finds the source of an output again, and names its words, no more often than a level
allows.

The reader knows the exact channel. Of 1,000 public texts of like length each is a source once and a
candidate always. The reader's best guess of a source is the likeliest candidate: no other reader is
right more often, be it by structure or by words. Words are named as by ``recovery.sentences``: by
the chances of the other texts, as if the source itself were unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.types import Bytes, Counts, Flags, Floats, Vectors
from lexveil.core.embeddings.sentences import Units
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.protection import Shares
from lexveil.readers.bands import BANDS, bands_of
from lexveil.readers.linkage import first_chance
from lexveil.readers.sentences import Channel

NEARLY = 1.5  # times what a reader names who sees no output: less is no target
PUBLIC_SEED = 1  # of the noise, which is public
STEPS_OF_AN_OCTAVE = 8  # epsilons that are tried from one to its double
STRIDE = 4  # of the search
NOISE = 0.02  # share of sources that may be found by chance
LEAST_NUMBER = -2 * STEPS_OF_AN_OCTAVE  # the number of epsilon 1/4
START = 2 * STEPS_OF_AN_OCTAVE  # of 4, where the search begins
MOST = 10 * STEPS_OF_AN_OCTAVE  # of 1,024


class Found(NamedTuple):
    """Shares of 1 of sources and words that a reader recovers at an epsilon.

    Attributes:
        linkage: sources that are found again among the candidates.
        content: distinct content words of sources that are named.
        rare: rare words among them that are named.
    """

    linkage: float
    content: float
    rare: float


@dataclass(frozen=True, slots=True, repr=False)
class PublicSources:
    """Public texts that serve as sources and as candidates in the measurement of linkage.

    Attributes:
        vectors: (P, p) the vectors of the texts.
        words: (P, W) 1 where a content word stands in a text, else 0; of words that stand in some.
        is_rare: (W,) whether a word is rare.
    """

    vectors: Vectors
    words: Vectors
    is_rare: Flags

    @classmethod
    def of(cls, texts: Units, vectors: Vectors, bands: Bytes) -> PublicSources:
        """Return the sources of texts.

        Args:
            texts: their tokens.
            vectors: their vectors.
            bands: (V,) the band of each token, as a number in ``BANDS``.
        """
        known = texts.known()
        is_content = bands[known.rows] != BANDS.index("function")
        of_text = np.repeat(np.arange(len(known)), np.diff(known.starts))
        rows, columns = np.unique(known.rows[is_content], return_inverse=True)
        words = np.zeros((len(known), len(rows)), dtype=np.float32)
        words[of_text[is_content], columns] = 1
        return cls(vectors, words, bands[rows] == BANDS.index("rare"))

    def __len__(self) -> int:
        return len(self.vectors)


def content_bands(counts: Counts, tokens: Sequence[str], is_plain: Callable[[str], bool]) -> Bytes:
    """Return the band of each token; one of plain words alone is of the band of function words.

    Args:
        is_plain: whether a word is a function word or a mark.
    """
    plain = np.array([all(map(is_plain, token.split("_"))) for token in tokens], dtype=np.bool_)
    return bands_of(counts, plain)


def found_at(
    mechanism: SentenceDraws, sources: PublicSources, per_text: int, epsilon: float
) -> Found:
    """Return the shares that a reader recovers from outputs of ``per_text`` sentences each."""
    n = len(sources)
    of = np.repeat(np.arange(n), per_text)
    spent = np.full(len(of), epsilon)
    noise = mechanism.noise(spent, stream(PUBLIC_SEED, "sentence levels"))
    rows = mechanism.replace_queries(sources.vectors, of, spent, noise)
    channel = Channel.of(mechanism, sources.vectors, rows, epsilon)
    places = np.array([channel.place[row] for row in rows.tolist()]).reshape(n, per_text)
    of_outputs = channel.log_p.T[places].sum(axis=1)
    hits = [first_chance(scores, source) for source, scores in enumerate(of_outputs)]
    named_words = named_by(sources, of_outputs)
    return Found(float(np.mean(hits)), *named_words)


def named_by(sources: PublicSources, log_likelihood: Floats) -> Shares:
    """Return the shares of the words of sources that a reader names. The reader knows all texts
    except the source itself, and weighs the words of each text by its probability.

    Args:
        log_likelihood: (P, P) of each output, as if of each candidate.
    """
    others = log_likelihood - log_likelihood.max(axis=1, keepdims=True)
    np.fill_diagonal(others, -np.inf)
    chances = np.exp(others - others.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    totals = np.zeros(2)
    hits = np.zeros(2)
    masses = chances.astype(np.float32) @ sources.words
    for source, mass in enumerate(masses):
        own = np.flatnonzero(sources.words[source])
        guess = np.argsort(-mass, kind="stable")[: len(own)]
        right = np.intersect1d(own, guess)
        totals += len(own), sources.is_rare[own].sum()
        hits += len(right), sources.is_rare[right].sum()
    content, rare = hits / np.maximum(totals, 1)
    return Shares(float(content), float(rare))


class LevelSearch:
    """The search for the epsilons of levels; each epsilon that is tried is measured once.

    At a large epsilon no sentence of a bank is as near to a text as the truncation reaches, so that
    all are as likely again: what is found out grows with epsilon up to a peak. No level is sought
    beyond it.

    Attributes:
        blind: the shares that a reader names without any output.
    """

    def __init__(self, mechanism: SentenceDraws, sources: PublicSources, per_text: int) -> None:
        self._mechanism = mechanism
        self._sources = sources
        self._per_text = per_text
        self._measured: dict[int, Found] = {}
        self.blind = named_by(sources, np.zeros((len(sources), len(sources))))

    def at(self, step: int) -> Found:
        """Return the shares that a reader recovers at an epsilon, which is given by its number in
        the grid.
        """
        if step not in self._measured:
            self._measured[step] = found_at(
                self._mechanism, self._sources, self._per_text, epsilon_of(step)
            )
        return self._measured[step]

    def holds(self, step: int, linkage: float, shares: Shares) -> bool:
        """Whether a reader recovers at most the allowed shares at an epsilon. A share below the
        share that is named without any output is no target.
        """
        reached = self.at(step)
        return (
            reached.linkage <= linkage
            and reached.content <= max(shares.content, NEARLY * self.blind.content)
            and reached.rare <= max(shares.rare, NEARLY * self.blind.rare)
        )

    def largest(self, linkage: float, shares: Shares) -> tuple[float, Found]:
        """Return the largest epsilon of the grid, and the shares recovered there, such that at this
        and every smaller epsilon a reader recovers at most the allowed shares; search only up to
        the peak of linkage.

        Raises:
            RequestError: if more is found out at every epsilon.
        """
        step = START
        while step > LEAST_NUMBER and not self.holds(step, linkage, shares):
            step -= STRIDE
        if not self.holds(step, linkage, shares):
            raise RequestError(
                f"at the smallest epsilon that is tried, {epsilon_of(LEAST_NUMBER):g}, a reader "
                f"finds {self.at(LEAST_NUMBER).linkage:.1%} of the sources among "
                f"{len(self._sources):,} texts"
            )
        peak = step
        while step < MOST and not self._is_past(peak, step):
            step += STRIDE
            if not self.holds(step, linkage, shares):
                peak = self._last(step - STRIDE, step, linkage, shares)
                break
            peak = max(peak, step, key=lambda tried: self.at(tried).linkage)
        return epsilon_of(peak), self.at(peak)

    def _is_past(self, peak: int, step: int) -> bool:
        """Whether linkage has fallen so far below the peak that the difference is not due to
        chance.
        """
        most = self.at(peak).linkage
        return most > NOISE and self.at(step).linkage < most / 2

    def _last(self, low: int, high: int, linkage: float, shares: Shares) -> int:
        """Return the last step that keeps to a level, between a step that keeps to it and a step
        that fails.
        """
        while high - low > 1:
            middle = (low + high) // 2
            if self.holds(middle, linkage, shares):
                low = middle
            else:
                high = middle
        return low


def epsilon_of(step: int) -> float:
    """Return the epsilon of a number, to four digits."""
    return float(f"{2 ** (step / STEPS_OF_AN_OCTAVE):.4g}")
