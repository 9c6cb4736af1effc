"""Protection levels for texts that are replaced by sentences of a sentence bank. The epsilon of a
level is the largest at which an adversary identifies source texts, and names their words, no more
often than the level allows.

The adversary knows the exact output distribution and, if each sentence is replaced by one sentence,
also the number of sentences of each text. Of 1,000 public texts of similar length, each is a source
once and a candidate always. The adversary guesses the likeliest candidate as the source; no other
adversary is right more often. Words are named as in ``recovery.sentences``: by the probabilities of
the other texts, as if the source itself were unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.types import Bytes, Counts, Flags, Floats, Ids, Vectors
from lexveil.core.embeddings.sentences import CutTexts, Units
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.protection import Shares
from lexveil.readers.bands import BANDS, bands_of
from lexveil.readers.linkage import first_chance
from lexveil.readers.sentences import Channel

NEARLY = 1.5  # least target, as a multiple of the share that a reader names without an output
PUBLIC_SEED = 1  # seed of the noise, which is public
STEPS_OF_AN_OCTAVE = 8  # epsilons of the grid per doubling
STRIDE = 4  # step of the first search, in epsilons of the grid
NOISE = 0.02  # share of sources that may be found by chance
LEAST_NUMBER = -2 * STEPS_OF_AN_OCTAVE  # number of epsilon 1/4
START = 3 * STEPS_OF_AN_OCTAVE  # number of epsilon 8, at which the search begins
MOST = 10 * STEPS_OF_AN_OCTAVE  # number of epsilon 1,024


class SentenceShares(NamedTuple):
    """Shares (from 0 to 1) of source texts and words that an adversary recovers at one epsilon.

    Attributes:
        linkage: share of source texts that are identified among the candidates.
        content: share of the distinct content words of source texts that are named.
        rare: share of the rare words among these that are named.
    """

    linkage: float
    content: float
    rare: float


@dataclass(frozen=True, slots=True, repr=False)
class PublicSources:
    """Public texts that serve as sources and as candidates in the measurement of linkage
    (identification of source texts).

    Attributes:
        vectors: the vectors of the units, which are the texts or their sentences.
        unit_of: (n,) the unit that each drawn sentence replaces.
        starts: (P + 1,) the first draw of each text.
        words: (P, W) 1 if a text contains a content word, else 0. The W words are those that occur
            in some text.
        is_rare: (W,) whether a word is rare.
    """

    vectors: Vectors
    unit_of: Ids
    starts: Ids
    words: Vectors
    is_rare: Flags

    @classmethod
    def of(
        cls, cut: CutTexts, per_text: int | None, embed: Callable[[Units], Vectors], bands: Bytes
    ) -> PublicSources:
        """Build the source and candidate texts of a linkage measurement.

        Args:
            per_text: number of sentences that replace a text; None if one sentence replaces each
                sentence.
            embed: the function that gives vectors to units.
            bands: (V,) the frequency band of each token, as an index into ``BANDS``.
        """
        units, drawn_for, unit_of = cut.draws(per_text)
        starts = np.searchsorted(drawn_for, np.arange(len(cut) + 1)).astype(np.int64)
        known = cut.texts.known()
        is_content = bands[known.rows] != BANDS.index("function")
        of_text = np.repeat(np.arange(len(known)), np.diff(known.starts))
        rows, columns = np.unique(known.rows[is_content], return_inverse=True)
        words = np.zeros((len(known), len(rows)), dtype=np.float32)
        words[of_text[is_content], columns] = 1
        return cls(embed(units), unit_of, starts, words, bands[rows] == BANDS.index("rare"))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def log_likelihoods(self, log_p: Floats, drawn: Ids) -> Floats:
        """Return (P, P) the log-likelihood of each output under each candidate text; it is -inf for
        a candidate with another number of draws.

        Args:
            log_p: the log-probability of each drawn sentence of the sentence bank, for each unit.
            drawn: (n,) the column of each draw in ``log_p``.
        """
        counts = np.diff(self.starts)
        scores = np.full((len(self), len(self)), -np.inf)
        for count in np.unique(counts).tolist():
            texts = np.flatnonzero(counts == count)
            draws = self.starts[texts][:, None] + np.arange(count)
            alike = np.zeros((len(texts), len(texts)))
            for one in draws.T:
                alike += log_p[np.ix_(self.unit_of[one], drawn[one])].T
            scores[np.ix_(texts, texts)] = alike
        return scores


def content_bands(counts: Counts, tokens: Sequence[str], is_plain: Callable[[str], bool]) -> Bytes:
    """Return the frequency band of each token. A token that consists of plain words only belongs to
    the band of function words.

    Args:
        is_plain: function that returns whether a word is a function word or a punctuation mark.
    """
    plain = np.array([all(map(is_plain, token.split("_"))) for token in tokens], dtype=np.bool_)
    return bands_of(counts, plain)


def found_at(mechanism: SentenceDraws, sources: PublicSources, epsilon: float) -> SentenceShares:
    """Simulate one output of each text, and return the shares of source texts and words that an
    adversary recovers.
    """
    spent = np.full(len(sources.unit_of), epsilon)
    noise = mechanism.noise(spent, stream(PUBLIC_SEED, "sentence levels"))
    rows = mechanism.replace_queries(sources.vectors, sources.unit_of, spent, noise)
    channel = Channel.of(mechanism, sources.vectors, rows, epsilon)
    drawn = np.array([channel.place[row] for row in rows.tolist()], dtype=np.int64)
    of_outputs = sources.log_likelihoods(channel.log_p, drawn)
    hits = [first_chance(scores, source) for source, scores in enumerate(of_outputs)]
    named_words = named_by(sources, of_outputs)
    return SentenceShares(float(np.mean(hits)), *named_words)


def named_by(sources: PublicSources, log_likelihood: Floats) -> Shares:
    """Return the shares of the words of source texts that an adversary names.

    The adversary knows all texts except the source itself, and weights the words of each text by
    the text's probability. If no other text can have given the output, all texts have the same
    weight.

    Args:
        log_likelihood: (P, P) log-likelihood of each output under each candidate.
    """
    others = log_likelihood.copy()
    np.fill_diagonal(others, -np.inf)
    others[~np.isfinite(others).any(axis=1)] = 0.0
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
    """Search for the epsilons of protection levels. Recovery by an adversary is measured once for
    each epsilon that is tried.

    Linkage (the share of identified source texts) grows with epsilon up to a peak, and no level has
    an epsilon beyond the peak. Beyond it linkage falls: if epsilon is large, no sentence of the
    sentence bank is within the truncation radius of a text, so that all sentences become equally
    likely again.

    Attributes:
        blind: the shares of words that an adversary names without any output.
    """

    def __init__(self, mechanism: SentenceDraws, sources: PublicSources) -> None:
        self._mechanism = mechanism
        self._sources = sources
        self._measured: dict[int, SentenceShares] = {}
        self.blind = named_by(sources, np.zeros((len(sources), len(sources))))

    def at(self, step: int) -> SentenceShares:
        """Return the shares that an adversary recovers at an epsilon of the grid.

        Args:
            step: the number of the epsilon in the grid.
        """
        if step not in self._measured:
            self._measured[step] = found_at(self._mechanism, self._sources, epsilon_of(step))
        return self._measured[step]

    def holds(self, step: int, linkage: float, shares: Shares) -> bool:
        """Return whether an adversary recovers at most the allowed shares at an epsilon of the
        grid. An allowed share of words is raised to ``NEARLY`` times the share that is named
        without any output, because no epsilon can give less.
        """
        reached = self.at(step)
        return (
            reached.linkage <= linkage
            and reached.content <= max(shares.content, NEARLY * self.blind.content)
            and reached.rare <= max(shares.rare, NEARLY * self.blind.rare)
        )

    def largest(self, linkage: float, shares: Shares) -> int:
        """Return the number of the largest epsilon of the grid up to which an adversary recovers at
        most the allowed shares. The search ends at the peak of linkage (the share of identified
        source texts).

        Raises:
            RequestError: if an adversary recovers more at every epsilon.
        """
        step = START
        while step > LEAST_NUMBER and not self.holds(step, linkage, shares):
            step -= STRIDE
        if not self.holds(step, linkage, shares):
            raise RequestError(
                f"even at the smallest epsilon of the search, {epsilon_of(LEAST_NUMBER):g}, a "
                f"reader finds {self.at(LEAST_NUMBER).linkage:.1%} of the sources among "
                f"{len(self._sources):,} texts"
            )
        peak = step
        while step < MOST and not self._is_past(peak, step):
            step += STRIDE
            if not self.holds(step, linkage, shares):
                peak = self._last(step - STRIDE, step, linkage, shares)
                break
            peak = max(peak, step, key=lambda tried: self.at(tried).linkage)
        return peak

    def _is_past(self, peak: int, step: int) -> bool:
        """Return whether linkage (the share of identified source texts) has fallen so far below its
        peak that the difference is not due to chance.
        """
        most = self.at(peak).linkage
        return most > NOISE and self.at(step).linkage < most / 2

    def _last(self, low: int, high: int, linkage: float, shares: Shares) -> int:
        """Return the last step of the epsilon grid at which the protection level holds, between a
        step at which it holds and a step at which it fails.
        """
        while high - low > 1:
            middle = (low + high) // 2
            if self.holds(middle, linkage, shares):
                low = middle
            else:
                high = middle
        return low


def epsilon_of(step: int) -> float:
    """Return the epsilon of a step of the grid, rounded to four digits."""
    return float(f"{2 ** (step / STEPS_OF_AN_OCTAVE):.4g}")
