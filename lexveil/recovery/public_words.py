"""Expected recovery of words that are as frequent as a model's public counts say.

Everything here follows from the model, the mechanism's parameters, the policy and a public seed: never from a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lexveil.accounting.budgets import Policy
from lexveil.artifacts.mechanisms import Prepared
from lexveil.artifacts.model import Model
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem_context import TemContext
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.bands import bands_of, prior_of
from lexveil.recovery.calibration import Curve, bracket, unchanged
from lexveil.recovery.estimate import near_of
from lexveil.recovery.shares import Expected, WordSample, by_band, expected
from lexveil.recovery.unigram import build_adversary
from lexveil.text.languages import language_of
from lexveil.types import Bytes, Flags, Floats, Ids, Vectors

SEED = 20261  # public and the same everywhere, so that everybody finds the same figures
WORDS = 2_000  # of each band, where an epsilon is sought: a share of 0.1 then has a standard deviation of 0.007
FEW = 1_000  # of each, where a record says what an epsilon means: 0.01
NEAR = 300  # of each, where about is enough
NEVER = 1e-300  # of a word that is never meant: an adversary takes logarithms


@dataclass(frozen=True)
class PublicWords:
    """The words of one mechanism, strategy and policy, as frequent as public counts say.

    Attributes:
        prepared: the mechanism over its W words.
        prior: (W,) how likely a perturbed token is each word, adding up to 1; 0 of stop words where they are not
            perturbed: that a token was perturbed is not hidden, so an adversary knows it is none of them.
        bands: (W,) the frequency band of each, as a number in ``recovery.bands.BANDS``.
        scales: (W,) the scores of each, by purpose.
    """

    prepared: Prepared
    prior: Floats
    bands: Bytes
    scales: dict[str, Floats]

    @classmethod
    def of(
        cls, model: Model, mechanism: str, strategy: str, policy: Policy, prepared: Prepared | None = None
    ) -> PublicWords:
        """The words of a model; ``prepared`` is its mechanism, where that was made before.

        Raises:
            MissingArtifact: if no run has made the embedding or the word orders.
            ParameterError: if a parameter does not suit the mechanism or the words.
        """
        prepared, space = prepared or model.mechanism(mechanism, strategy, policy), model.embedding(strategy)
        rows = prepared.vocabulary.rows
        tokens, counts = [space.tokens[row] for row in rows.tolist()], space.counts[rows]
        prior, stop_words = prior_of(counts), language_of(model.language).function_words
        if policy.stopwords != "perturb":
            # Single words: a collocation of stop words is a token like any other.
            prior[[token in stop_words for token in tokens]] = 0.0
            prior /= prior.sum() or 1.0
        scales = {str(purpose): purpose.of(tokens) for purpose in model.kept_purposes}
        return cls(prepared, prior, bands_of(counts, function_words(tokens, stop_words)), scales)

    @cached_property
    def _near(self) -> Vectors:
        return near_of(self.prepared.mechanism, self.prepared.open_near_lists)

    def sample(self, name: str, n_words: int) -> WordSample:
        """``n_words`` of each band, drawn from a public seed; another ``name`` draws others."""
        return WordSample.draw(self.prior, self.bands, stream(SEED, "words", name), n_words)

    def adversary(self, epsilon_range: tuple[float, float]) -> Adversary:
        """The unigram adversary, for budgets of a token within a range."""
        prior = np.maximum(self.prior, NEVER)
        return build_adversary(self.prepared.mechanism, prior, epsilon_range, lambda: self._near)

    def expected(self, epsilon: float, name: str = "calibration", n_words: int | None = None) -> Expected:
        """What the adversary is expected to get back of tokens of one epsilon.

        Args:
            name: of words and noise, which are drawn from a public seed: the same name has the same at every epsilon.
            n_words: of each band; None is ``WORDS``.

        Raises:
            ParameterError: if the mechanism refuses epsilon.
        """
        adversary = self.adversary((epsilon, epsilon))
        words, noise = self.sample(name, n_words or WORDS), stream(SEED, "noise", name)
        before = self._before(words.ids, epsilon, name)
        return expected(self.prepared.mechanism, adversary, words, epsilon, noise, self.scales, before)

    def _before(self, ids: Ids, epsilon: float, name: str) -> Ids | None:
        """What is written before words, where the mechanism looks at it: as public bigrams have it, and rewritten too.

        What is never perturbed, a stop word or a mark, is written as it is.
        """
        mechanism, vocabulary = self.prepared.mechanism, self.prepared.vocabulary
        if not isinstance(mechanism, TemContext):
            return None
        rng = stream(SEED, "before", name)
        before = mechanism.draw_before(ids, rng)
        number = vocabulary.number[before]
        rewritten = np.flatnonzero((before >= 0) & (number >= 0) & (self.prior[number] > 0))
        budgets = np.full(len(rewritten), epsilon)
        drawn = mechanism.replace(number[rewritten], budgets, mechanism.noise(budgets, rng))
        before[rewritten] = vocabulary.rows[drawn]
        return before

    def epsilon_near(self, target: float, band: str) -> float:
        """About where ``target`` comes out unchanged, which is quickly found: a start for the search."""
        mechanism, words = self.prepared.mechanism, WordSample.draw(self.prior, self.bands, stream(SEED, "near"), NEAR)

        def holds(number: int) -> bool:
            budgets = np.full(len(words.ids), Curve.epsilon(number))
            outputs = mechanism.replace(words.ids, budgets, mechanism.noise(budgets, stream(SEED, "near noise")))
            same = by_band(outputs == words.ids, words.bands)
            return unchanged(Expected(0.0, same, same, words.mass), band) <= target

        return Curve.epsilon(bracket(holds, 0)[0])


def function_words(tokens: Sequence[str], stop_words: frozenset[str]) -> Flags:
    """Whether each token is a function word: a stop word, or a collocation of nothing but stop words; (n,)."""
    return np.array([stop_words.issuperset(token.split("_")) for token in tokens], dtype=np.bool_)
