"""Expected recovery of words drawn by a model's public counts.

Everything here follows from the model, the mechanism's parameters, the policy and a public seed:
never from a text.
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
from lexveil.recovery.adversary import Adversary
from lexveil.recovery.bands import bands_of, prior_of
from lexveil.recovery.calibration import Curve, bracket, unchanged
from lexveil.recovery.context import ContextualAdversary
from lexveil.recovery.estimate import near_of
from lexveil.recovery.public_texts import REACH, TokenBigrams
from lexveil.recovery.seen_tokens import SeenTokens
from lexveil.recovery.shares import Expected, WordSample, by_band, expected
from lexveil.recovery.unigram import build_adversary
from lexveil.text.languages import language_of
from lexveil.types import Bytes, Flags, Floats, Ids, Vectors

SEED = 20261  # public seed, so that everybody computes the same figures
WORDS = 1_000  # words of each band: a share of 0.1 then has a standard deviation of 0.01
NEAR = 300  # words of each band where an approximate share is enough
NEVER = 1e-300  # prior of an impossible word, because an adversary takes logarithms


@dataclass(frozen=True)
class PublicWords:
    """The words of one mechanism, strategy and policy, with frequencies by public counts.

    Attributes:
        prepared: the mechanism over its W words.
        prior: (W,) probability of each word at a perturbed token, adding up to 1; 0 for stop words
            where they are not perturbed: that a token was perturbed is not hidden, so an adversary
            can rule them out.
        bands: (W,) the frequency band of each word, as a number in ``recovery.bands.BANDS``.
        scales: (W,) the scores of each word, by purpose.
        texts: bigram model of texts around the words; None if the model has no bigram counts.
    """

    prepared: Prepared
    prior: Floats
    bands: Bytes
    scales: dict[str, Floats]
    texts: TokenBigrams | None

    @classmethod
    def of(
        cls,
        model: Model,
        mechanism: str,
        strategy: str,
        policy: Policy,
        prepared: Prepared | None = None,
    ) -> PublicWords:
        """Return the words of a model; ``prepared`` is its mechanism, if it was built before.

        Raises:
            MissingArtifactError: if no run has made the embedding or the word orders.
            ParameterError: if a parameter does not suit the mechanism or the words.
        """
        prepared = prepared or model.mechanism(mechanism, strategy, policy)
        space = model.embedding(strategy)
        rows = prepared.vocabulary.rows
        tokens = [space.tokens[row] for row in rows.tolist()]
        counts = space.counts[rows]
        prior = prior_of(counts)
        stop_words = language_of(model.language).function_words
        if policy.stopwords != "perturb":
            # Only single words: a collocation of stop words is a token like any other.
            prior[[token in stop_words for token in tokens]] = 0.0
            prior /= prior.sum() or 1.0
        scales = {str(purpose): purpose.of(tokens) for purpose in model.kept_purposes(strategy)}
        bands = bands_of(counts, function_words(tokens, stop_words))
        bigrams = model.bigrams(strategy)
        texts = None if bigrams is None else TokenBigrams(space.tokens, space.counts, bigrams)
        return cls(prepared, prior, bands, scales, texts)

    @cached_property
    def _near(self) -> Vectors:
        return near_of(self.prepared.mechanism, self.prepared.open_near_lists)

    def sample(self, name: str, n_words: int) -> WordSample:
        """Draw ``n_words`` of each band from a public seed; another ``name`` draws others."""
        return WordSample.draw(self.prior, self.bands, stream(SEED, "words", name), n_words)

    def adversary(self, epsilon_range: tuple[float, float]) -> Adversary:
        """Build the unigram adversary for budgets of a token within a range."""
        prior = np.maximum(self.prior, NEVER)
        return build_adversary(self.prepared.mechanism, prior, epsilon_range, lambda: self._near)

    def expected(self, epsilon: float, name: str = "calibration") -> Expected:
        """Return the expected recovery of tokens of one epsilon by the strongest adversary.

        Args:
            name: name of the words and the noise, which are drawn from a public seed: the same name
                gives the same at every epsilon.

        Raises:
            ParameterError: if the mechanism refuses epsilon.
        """
        sample = self.sample(name, WORDS)
        if self.texts is None:
            adversary = self.adversary((epsilon, epsilon))
            noise = stream(SEED, "noise", name)
            return expected(self.prepared.mechanism, adversary, sample, epsilon, noise, self.scales)
        outputs, guesses = self.read(sample, epsilon, name)
        return Expected.of(epsilon, sample, outputs, guesses, self.scales)

    def read(self, sample: WordSample, epsilon: float, name: str) -> tuple[Ids, list[Ids]]:
        """Return the outputs of words in public texts, and the guesses by the word and in context;
        (n,) each.

        The texts around the words are rewritten as in a run, from left to right, and decoded as a
        whole. The adversary knows all unperturbed tokens, even those that the policy drops.
        """
        vocabulary = self.prepared.vocabulary
        texts = self.texts
        assert texts is not None
        clean = texts.around(vocabulary.rows[sample.ids], stream(SEED, "texts", name))
        ids = vocabulary.number[clean]
        is_drawn = (ids >= 0) & (self.prior[ids] > 0)
        written = self._rewritten(clean, ids, is_drawn, epsilon, stream(SEED, "noise", name))
        outputs = np.where(is_drawn, vocabulary.number[written], -1)
        certain = [
            None if row < 0 else texts.tokens[row]
            for row in np.where(is_drawn, -1, clean).ravel().tolist()
        ]
        before = np.column_stack([np.full(len(clean), -1), written[:, :-1]])
        text_of = np.repeat(np.arange(len(clean)), clean.shape[1])
        seen = SeenTokens(
            text_of, outputs.ravel(), np.full(clean.size, epsilon), certain, before.ravel()
        )
        by_word = self.adversary((epsilon, epsilon))
        prior = np.maximum(self.prior, NEVER)
        symbols = [[texts.tokens[row]] for row in vocabulary.rows.tolist()]
        guesses = ContextualAdversary(by_word, prior, texts, symbols, with_output_only=True).guess(
            seen
        )
        middle = is_drawn.ravel().cumsum().reshape(clean.shape)[:, REACH] - 1
        return outputs[:, REACH], [guesses.by_word[middle], guesses.by_context[middle]]

    def _rewritten(
        self, clean: Ids, ids: Ids, is_drawn: Flags, epsilon: float, rng: np.random.Generator
    ) -> Ids:
        """Rewrite texts one column after the other, since the tokens written before may matter."""
        mechanism = self.prepared.mechanism
        written = clean.copy()
        for column in range(clean.shape[1]):
            drawn = np.flatnonzero(is_drawn[:, column])
            budgets = np.full(len(drawn), epsilon)
            before = written[drawn, column - 1] if column else None
            output = mechanism.replace_after(
                ids[drawn, column], budgets, mechanism.noise(budgets, rng), before
            )
            written[drawn, column] = self.prepared.vocabulary.rows[output]
        return written

    def epsilon_near(self, target: float, band: str) -> float:
        """Return an ε at which about ``target`` comes out unchanged, which is quick to find: a
        start for the search.
        """
        mechanism = self.prepared.mechanism
        words = WordSample.draw(self.prior, self.bands, stream(SEED, "near"), NEAR)

        def holds(number: int) -> bool:
            budgets = np.full(len(words.ids), Curve.epsilon(number))
            outputs = mechanism.replace(
                words.ids, budgets, mechanism.noise(budgets, stream(SEED, "near noise"))
            )
            same = by_band(outputs == words.ids, words.bands)
            return unchanged(Expected(0.0, same, same, words.mass), band) <= target

        return Curve.epsilon(bracket(holds, 0)[0])


def function_words(tokens: Sequence[str], stop_words: frozenset[str]) -> Flags:
    """Return (n,) whether each token is a function word: a stop word, or a collocation of stop
    words only.
    """
    return np.array([stop_words.issuperset(token.split("_")) for token in tokens], dtype=np.bool_)
