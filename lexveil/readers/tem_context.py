"""Adversary of the mechanism tem_context, whose output depends on the output token before it. The
adversary uses both tokens and the closed form of the output distribution.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import product_distances
from lexveil.core.mechanisms.base_measure import BaseMeasure
from lexveil.core.mechanisms.causal_measure import CausalMeasure, Course
from lexveil.core.mechanisms.tem_context import TemContext
from lexveil.readers.adversary import Candidates
from lexveil.readers.seen_tokens import Symbols, is_new
from lexveil.readers.tem import PUBLIC_SEED, SUMMED, WORDS_AT_A_TIME, TemAdversary

RESCORED = 32  # number of candidates of an output whose normalizer is computed for the token before
# greatest number of following words in a normalizer; of more, this many are drawn by their mass
FOLLOWING = 256
# number of words with the largest m after a text, which a normalizer includes exactly; SUMMED
# others are a sample of the rest
MOST = 2048
PAIRS = 2**18  # pairs of candidates and following words per block: 1 MB


class TemContextAdversary(TemAdversary):
    """Adversary that guesses the source word w of an output y with the largest ln π(w) -
    ε·min(d(w,y), γ)/2 - ln Z(w, c), where c is the token written before y.

    Z(w, c) = Σ_u m(u | c)·exp(-ε·min(d(w,u), γ)/2). The base measure m(y | c) of the output is the
    same for every w, but Z is not: if likely words after c are near w, y says less about w. The
    adversary takes the most probable candidates without c, and computes Z(w, c) for the first
    ``RESCORED``.
    """

    mechanism: TemContext

    def __init__(
        self, mechanism: TemContext, prior: Floats, epsilon_range: tuple[float, float]
    ) -> None:
        self.limit = float(mechanism.gamma(np.array([2.0]))[0])  # ε·γ/2 is the same for all ε
        super().__init__(mechanism, prior, epsilon_range)
        self._log_single = np.log(prior) - self.bias

    def log_normalizers(self) -> Floats:
        """Return the log normalizer ln Σ_u m(u)·exp(-ε·min(d(w,u), γ)/2) of every word w at each
        grid epsilon of the ladder, (L, V), for an output without a token before it.

        The sum is estimated: it is the term of the word itself, plus the mean over ``SUMMED`` other
        words, drawn by m, times the m of all others.
        """
        mass = self.mechanism.mass.single.astype(np.float64)
        n = len(mass)
        rates = self.ladder.rungs / 2
        sums = np.empty((len(rates), n))
        drawn = np.random.default_rng(PUBLIC_SEED).choice(n, SUMMED, p=mass / mass.sum())
        for start in range(0, n, WORDS_AT_A_TIME):
            words = np.arange(start, min(start + WORDS_AT_A_TIME, n))
            distances = product_distances(self.vectors[words], self.vectors[drawn])
            is_other = words[:, None] != drawn
            others = (mass.sum() - mass[words]) / np.maximum(is_other.sum(axis=1), 1)
            for level, rate in enumerate(rates):
                weights = np.where(is_other, np.exp(-np.minimum(rate * distances, self.limit)), 0)
                sums[level, words] = mass[words] + others * weights.sum(axis=1)
        return np.log(sums)

    def candidates(
        self, outputs: Ids, epsilon: Floats, k: int, before: Ids | None = None
    ) -> Candidates:
        """Return the k most probable source words of each of n outputs, as in ``Adversary``."""
        candidates = super().candidates(outputs, epsilon, max(k, RESCORED))
        if before is None:
            before = np.full(len(outputs), -1, dtype=np.int64)
        joint = candidates.log_joint - self._log_ratio(candidates.ids, epsilon, before)
        order = np.argsort(-joint, axis=1, kind="stable")[:, :k]
        return Candidates(
            np.take_along_axis(candidates.ids, order, axis=1),
            np.take_along_axis(joint, order, axis=1),
        )

    def log_likelihood(
        self, words: Ids, outputs: Ids, epsilon: Floats, before: Ids | None = None
    ) -> Floats:
        """Return log-likelihoods ln Pr[M(w) = y] of n words and outputs, as in ``Adversary``."""
        log_likelihood = super().log_likelihood(words, outputs, epsilon)
        if before is None:
            return log_likelihood
        return log_likelihood - self._log_ratio(words[:, None], epsilon, before)[:, 0]

    def _log_ratio(self, words: Ids, epsilon: Floats, before: Ids) -> Floats:
        """Return the effect of the token before on the log normalizer, ln(Z(w, c) / Z(w)), for the
        candidates (n, k) of n outputs; the effect is 0 if no token was written before the output.
        """
        ratio = np.zeros(words.shape)
        single = self._without_context(words, epsilon)
        order = np.argsort(before, kind="stable")
        tokens = order[np.searchsorted(before[order], 0) :]
        for context, group in _groups(before, tokens):
            ids, mass = self._following(context)
            step = max(PAIRS // max(len(ids) * words.shape[1], 1), 1)
            for some in (group[start : start + step] for start in range(0, len(group), step)):
                rates = np.repeat(epsilon[some] / 2, words.shape[1]).astype(np.float32)
                weights = self._weights(words[some].ravel(), ids, rates) @ mass
                ratio[some] = np.log1p(weights.reshape(words[some].shape) * np.exp(-single[some]))
        return ratio

    def _without_context(self, words: Ids, epsilon: Floats) -> Floats:
        """Return the log normalizer ln Z(w) of the candidates (n, k) of n outputs, for an output
        without a token before it.
        """
        single = np.zeros(words.shape)
        at = self.ladder.weights(epsilon)
        for step in range(at.weights.shape[1]):
            single += (
                at.weights[:, step, None] * self._log_single[(at.first + step)[:, None], words]
            )
        return single

    def _weights(self, words: Ids, others: Ids, rates: Vectors) -> Vectors:
        """Return the weights exp(-min(rate·d, limit)) of n words and m others, (n, m), where d is
        their distance. They are computed in float32 and in place, because this takes most of the
        time.
        """
        squares = self._channel.squares
        weights = self.vectors[words] @ self.vectors[others].T
        weights *= -2
        weights += squares[words, None]
        weights += squares[others]
        np.sqrt(np.maximum(weights, 0, out=weights), out=weights)
        weights *= -rates[:, None]
        np.exp(np.maximum(weights, np.float32(-self.limit), out=weights), out=weights)
        return weights

    def _following(self, context: int) -> tuple[Ids, Vectors]:
        """Return the words after a token, and the additional mass that the token gives each of
        them. If there are many, return a weighted sample of them.
        """
        mass = self.mechanism.mass
        assert isinstance(mass, BaseMeasure)
        row = slice(mass.starts[context], mass.starts[context + 1])
        ids = mass.ids[row].astype(np.int64)
        after = mass.after[row].astype(np.float32)
        if len(ids) <= FOLLOWING or not after.any():
            return ids, after
        shares = mass.after[row] / mass.after[row].sum()
        drawn = np.random.default_rng((PUBLIC_SEED, context)).choice(len(ids), FOLLOWING, p=shares)
        return ids[drawn], np.full(FOLLOWING, after.sum() / FOLLOWING, np.float32)


class CausalContextAdversary(TemContextAdversary):
    """Adversary of tem_context with a language model. It reads the whole output text before a word,
    as the mechanism did.

    For a word whose text is unknown, Z(w) is computed as at the beginning of a text.
    """

    def candidates(
        self,
        outputs: Ids,
        epsilon: Floats,
        k: int,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Candidates:
        """Return the k most probable source words, as in ``Adversary``. ``before`` is ignored,
        because a single token does not determine the model's context.
        """
        return TemAdversary.candidates(self, outputs, epsilon, k)

    def log_likelihood(
        self,
        words: Ids,
        outputs: Ids,
        epsilon: Floats,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return log-likelihoods, as in ``Adversary``, with the normalizers of the beginning of a
        text.
        """
        return TemAdversary.log_likelihood(self, words, outputs, epsilon)

    def in_texts(self, tokens: Symbols, k: int) -> Candidates:
        """Return the k most probable source words in whole texts, as in ``Adversary``, with Z(w, c)
        of every candidate, where c is all text before.
        """
        measure = self.mechanism.mass
        is_drawn = tokens.outputs >= 0
        assert isinstance(measure, CausalMeasure)
        epsilon = tokens.epsilon[is_drawn]
        number = np.cumsum(is_drawn) - 1
        candidates = self.candidates(tokens.outputs[is_drawn], epsilon, k)
        joint = candidates.log_joint + self._without_context(candidates.ids, epsilon)
        of_kept = iter(
            measure.model.pieces([[word] for word in tokens.certain if word is not None])
        )
        rows = zip(tokens.certain, tokens.written.tolist(), strict=True)
        read = [
            next(of_kept) if word is not None else measure.pieces[row] if row >= 0 else []
            for word, row in rows
        ]
        is_known = ~is_drawn

        def draw(places: list[int], masses: Ids) -> None:
            is_known[places] = True
            for one, mass in zip(number[places].tolist(), masses, strict=True):
                joint[one] -= self._log_normalizer(candidates.ids[one], epsilon[one], mass)

        course = Course(
            is_new(tokens.text_of), is_drawn, lambda at: read[at] if is_known[at] else None, draw
        )
        measure.walk(course)
        order = np.argsort(-joint, axis=1, kind="stable")
        return Candidates(
            np.take_along_axis(candidates.ids, order, axis=1),
            np.take_along_axis(joint, order, axis=1),
        )

    def _log_normalizer(self, words: Ids, epsilon: float, mass: Ids) -> Floats:
        """Return the log normalizer ln Z(w, c) of k words after one context. The sum runs over the
        words with the largest base measure ``mass``, over w itself, and over a sample of the other
        words drawn by the base measure.
        """
        n = len(mass)
        top = np.arange(len(mass))
        rest = np.zeros(0, dtype=np.int64)
        if n > MOST:
            top = np.argpartition(mass, n - MOST)[n - MOST :]
            others = mass.astype(np.float64)
            others[top] = 0
            rest = np.random.default_rng(PUBLIC_SEED).choice(n, SUMMED, p=others / others.sum())
        chosen = np.concatenate([top, rest])
        of_each = np.append(
            mass[top], np.full(len(rest), (mass.sum() - mass[top].sum()) / max(len(rest), 1))
        )
        weights = self._weights(words, chosen, np.full(len(words), epsilon / 2, dtype=np.float32))
        weights[words[:, None] == chosen] = 0
        log_sums: Floats = np.log(weights @ of_each + mass[words])
        return log_sums


def _groups(before: Ids, tokens: Ids) -> list[tuple[int, Ids]]:
    """Group tokens by their context, in order of the contexts.

    Args:
        tokens: some tokens, sorted by context.
    """
    if not len(tokens):
        return []
    starts = np.flatnonzero(np.append(True, np.diff(before[tokens]) > 0))
    return [(int(before[group[0]]), group) for group in np.split(tokens, starts[1:])]
