"""Expected recovery by an adversary of words that are drawn by a model's public counts.

All results depend on the model, the mechanism's parameters, the policy and a public seed, never on
a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lexveil.base.types import Bytes, Floats, Ids, Vectors
from lexveil.core.accounting.budgets import Policy
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.artifacts.model import Model
from lexveil.readers.adversary import Adversary
from lexveil.readers.calibration import Curve, bracket, unchanged
from lexveil.readers.counted_words import NEVER, PUBLIC_SEED, CountedWords, WordsInContext
from lexveil.readers.estimate import near_of
from lexveil.readers.public_texts import REACH, TokenBigrams
from lexveil.readers.shares import Expected, WordSample, by_band, expected
from lexveil.readers.unigram import build_adversary

# number of words per band: a share of 0.1 then has a standard deviation of 0.01
WORDS_OF_A_BAND = 1_000
NEAR = 300  # number of words per band if an approximate share is enough


@dataclass(frozen=True)
class PublicWords:
    """The words that one mechanism, strategy and policy can replace, with their public frequencies.

    Attributes:
        prepared: the mechanism over its W words.
        counted: the words with their frequencies.
        scales: (W,) the scores of each word, by purpose (a word scale that the metric preserves).
    """

    prepared: Prepared
    counted: CountedWords
    scales: dict[str, Floats]

    @classmethod
    def of(
        cls,
        model: Model,
        mechanism: str,
        strategy: str,
        policy: Policy,
        prepared: Prepared | None = None,
    ) -> PublicWords:
        """Return the words of a model that a mechanism, strategy and policy can replace, with their
        public frequencies.

        Args:
            prepared: the mechanism of the model, if it was built before.

        Raises:
            MissingArtifactError: if no run has made the embedding or the word orders.
            ParameterError: if a parameter is invalid for the mechanism or the words.
        """
        prepared = prepared or model.mechanism(mechanism, strategy, policy)
        space = model.embedding(strategy)
        vocabulary = prepared.vocabulary
        bigrams = model.bigrams(strategy)
        counted = CountedWords.of(space, vocabulary, bigrams, policy, model.language)
        tokens = [space.tokens[row] for row in vocabulary.rows.tolist()]
        scales = {str(purpose): purpose.of(tokens) for purpose in model.kept_purposes(strategy)}
        return cls(prepared, counted, scales)

    @property
    def prior(self) -> Floats:
        """(W,) probability of each word at a perturbed token, as in ``CountedWords``."""
        return self.counted.prior

    @property
    def bands(self) -> Bytes:
        """(W,) the frequency band of each word, as in ``CountedWords``."""
        return self.counted.bands

    @property
    def texts(self) -> TokenBigrams | None:
        """Bigram model of texts around the words; None if the model has no bigram counts."""
        return self.counted.texts

    @cached_property
    def _near(self) -> Vectors:
        return near_of(self.prepared.mechanism, self.prepared.open_near_lists)

    def sample(self, name: str, n_words: int) -> WordSample:
        """Draw ``n_words`` words of each frequency band, with a generator seeded by a public seed
        and ``name``. Another name gives another sample.
        """
        return self.counted.sample(name, n_words)

    def adversary(self, epsilon_range: tuple[float, float]) -> Adversary:
        """Build the unigram adversary of the mechanism, for token budgets within a range."""
        prior = np.maximum(self.prior, NEVER)
        return build_adversary(self.prepared.mechanism, prior, epsilon_range, lambda: self._near)

    def expected(self, epsilon: float, name: str = "calibration") -> Expected:
        """Return the share of words that the strongest adversary is expected to recover from tokens
        of one epsilon.

        Args:
            name: name of the sample. Together with a public seed it determines words and noise,
                which are the same at every epsilon.

        Raises:
            ParameterError: if the mechanism refuses epsilon.
        """
        sample = self.sample(name, WORDS_OF_A_BAND)
        if self.texts is None:
            adversary = self.adversary((epsilon, epsilon))
            noise = stream(PUBLIC_SEED, "noise", name)
            return expected(self.prepared.mechanism, adversary, sample, epsilon, noise, self.scales)
        outputs, guesses = self.read(sample, epsilon, name)
        return Expected.of(epsilon, sample, outputs, guesses, self.scales)

    def read(self, sample: WordSample, epsilon: float, name: str) -> tuple[Ids, list[Ids]]:
        """Simulate outputs of the words of a sample, placed in random public texts, and return them
        with an adversary's guesses by the output word and in context; (n,) each.

        The texts around the words are rewritten as in a real run, from left to right, and decoded
        as a whole. The adversary knows all unperturbed tokens, even those that the policy drops.
        """
        clean = self.counted.around(sample, name)
        written = self._rewritten(clean, epsilon, stream(PUBLIC_SEED, "noise", name))
        outputs = np.where(clean.is_perturbed, self.prepared.vocabulary.number[written], -1)
        before = np.column_stack([np.full(len(written), -1), written[:, :-1]])
        by_word = self.adversary((epsilon, epsilon))
        guesses = self.counted.guesses(clean, outputs, before, epsilon, by_word)
        return outputs[:, REACH], guesses

    def _rewritten(self, clean: WordsInContext, epsilon: float, rng: np.random.Generator) -> Ids:
        """Rewrite texts column by column, because the output tokens before a token can affect its
        draw.
        """
        mechanism = self.prepared.mechanism
        written = clean.rows.copy()
        for column in range(written.shape[1]):
            drawn = np.flatnonzero(clean.is_perturbed[:, column])
            budgets = np.full(len(drawn), epsilon)
            before = written[drawn, column - 1] if column else None
            output = mechanism.replace_after(
                clean.ids[drawn, column], budgets, mechanism.noise(budgets, rng), before
            )
            written[drawn, column] = self.prepared.vocabulary.rows[output]
        return written

    def epsilon_near(self, target: float, band: str) -> float:
        """Return an ε at which the share of unchanged words is about ``target``. The estimate is
        quick, and serves as the start of the calibration's search.
        """
        mechanism = self.prepared.mechanism
        words = WordSample.draw(self.prior, self.bands, stream(PUBLIC_SEED, "near"), NEAR)

        def holds(number: int) -> bool:
            budgets = np.full(len(words.ids), Curve.epsilon(number))
            outputs = mechanism.replace(
                words.ids, budgets, mechanism.noise(budgets, stream(PUBLIC_SEED, "near noise"))
            )
            same = by_band(outputs == words.ids, words.bands)
            return unchanged(Expected(0.0, same, same, words.mass), band) <= target

        return Curve.epsilon(bracket(holds, 0)[0])
