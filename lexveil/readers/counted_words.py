"""Words that a policy may perturb, with their public frequencies and public texts around them. The
module also computes the recovery by an adversary who sees no output, which is a lower limit for
every mechanism and ε.

No function needs vectors, so this limit is known before an embedding is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.base.types import Bytes, Flags, Floats, Ids, ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.text.languages import language_of
from lexveil.readers.adversary import Adversary, Candidates
from lexveil.readers.bands import ALL, BANDS_OF, bands_of, function_words, prior_of
from lexveil.readers.context import ContextualAdversary
from lexveil.readers.public_texts import REACH, TokenBigrams
from lexveil.readers.seen_tokens import SeenTokens
from lexveil.readers.shares import Expected, WordSample

PUBLIC_SEED = 20261  # public seed, so that everybody computes the same figures
UNSEEN = 1_000  # number of words per band for the reader without an output
NEVER = 1e-300  # prior of an impossible word, because an adversary takes logarithms


class WordsInContext(NamedTuple):
    """Random public texts of t tokens around n words; all arrays are (n, t).

    Attributes:
        rows: the tokens, as rows of the embedding.
        ids: the tokens, as numbers of the vocabulary; -1 for tokens outside the vocabulary.
        is_perturbed: whether the policy perturbs the token.
    """

    rows: Ids
    ids: Ids
    is_perturbed: Flags


@dataclass(frozen=True)
class CountedWords:
    """The W words that a strategy and policy perturb, with their public frequencies.

    Attributes:
        vocabulary: the words as rows of an embedding.
        prior: (W,) probability of each word at a perturbed token, adding up to 1. Stop words that
            the policy does not perturb have the probability 0: an adversary can rule them out,
            because it is not hidden that a token was perturbed.
        bands: (W,) the frequency band of each word, as an index into ``recovery.bands.BANDS``.
        texts: bigram model of texts around the words; None if there are no bigram counts.
    """

    vocabulary: Vocabulary
    prior: Floats
    bands: Bytes
    texts: TokenBigrams | None

    @classmethod
    def of(
        cls,
        space: WordSpace,
        vocabulary: Vocabulary,
        bigrams: Bigrams | None,
        policy: Policy,
        language: str,
    ) -> CountedWords:
        """Return the words of an embedding that a policy perturbs, with their frequencies. Only
        tokens and counts of ``space`` are used.
        """
        rows = vocabulary.rows
        tokens = [space.tokens[row] for row in rows.tolist()]
        counts = space.counts[rows]
        prior = prior_of(counts)
        stop_words = language_of(language).function_words
        if policy.stopwords != "perturb":
            # Only single words: a collocation of stop words is a token like any other.
            prior[[token in stop_words for token in tokens]] = 0.0
            prior /= prior.sum() or 1.0
        bands = bands_of(counts, function_words(tokens, stop_words))
        texts = None if bigrams is None else TokenBigrams(space.tokens, space.counts, bigrams)
        return cls(vocabulary, prior, bands, texts)

    def sample(self, name: str, n_words: int) -> WordSample:
        """Draw ``n_words`` words of each frequency band, with a generator seeded by a public seed
        and ``name``. Another name gives another sample.
        """
        return WordSample.draw(self.prior, self.bands, stream(PUBLIC_SEED, "words", name), n_words)

    def around(self, sample: WordSample, name: str) -> WordsInContext:
        """Draw a random text around each word of a sample, with a generator seeded by a public seed
        and ``name``.
        """
        texts = self.texts
        assert texts is not None
        rows = texts.around(self.vocabulary.rows[sample.ids], stream(PUBLIC_SEED, "texts", name))
        ids = self.vocabulary.number[rows]
        return WordsInContext(rows, ids, (ids >= 0) & (self.prior[ids] > 0))

    def guesses(
        self, clean: WordsInContext, outputs: Ids, before: Ids, epsilon: float, by_word: Adversary
    ) -> list[Ids]:
        """Return an adversary's guesses of the words in the middle of the texts: by the output word
        alone, and in context; (n,) each.

        The adversary knows all unperturbed tokens, even those that the policy drops.

        Args:
            clean: the texts.
            outputs: the output at each perturbed token, -1 elsewhere, in the shape of the texts.
            before: the token written before each token, as in ``SeenTokens``.
            epsilon: the budget of each token.
            by_word: the unigram adversary.
        """
        texts = self.texts
        assert texts is not None
        certain = [
            None if row < 0 else texts.tokens[row]
            for row in np.where(clean.is_perturbed, -1, clean.rows).ravel().tolist()
        ]
        text_of = np.repeat(np.arange(len(clean.rows)), clean.rows.shape[1])
        budgets = np.full(clean.rows.size, epsilon)
        seen = SeenTokens(
            text_of=text_of,
            outputs=WordNumbers(outputs.ravel()),
            epsilon=budgets,
            certain=certain,
            before=ModelRows(before.ravel()),
        )
        prior = np.maximum(self.prior, NEVER)
        symbols = [[texts.tokens[row]] for row in self.vocabulary.rows.tolist()]
        adversary = ContextualAdversary(by_word, prior, texts, symbols, with_output_only=True)
        guesses = adversary.guess(seen)
        perturbed = clean.is_perturbed
        middle = perturbed.ravel().cumsum().reshape(perturbed.shape)[:, REACH] - 1
        return [guesses.by_word[middle], guesses.by_context[middle]]

    def least(self) -> dict[str, float]:
        """Return the share of the perturbed words that an adversary guesses without seeing an
        output, by frequency band. An adversary who sees an output guesses at least this share, for
        every mechanism and ε.

        The adversary knows the counts and the unperturbed tokens.
        """
        sample = self.sample("calibration", UNSEEN)
        clean = self.around(sample, "calibration")
        unseen = np.where(clean.is_perturbed, 0, -1)
        nothing = np.full(unseen.shape, -1)
        guesses = self.guesses(clean, unseen, nothing, 1.0, Unseeing(self.prior))
        expected = Expected.of(0.0, sample, unseen[:, REACH], guesses, {})
        return {band: expected.overall(expected.recovered, band) for band in BANDS_OF}


def below_least(nearest: float, band: str) -> str:
    """Return a message that explains why no run of the grid can reach a recovery level below the
    share of words that an adversary guesses without any output.

    Args:
        nearest: the share of the words that this adversary guesses.
        band: the frequency band of the words.
    """
    words = "all words" if band == ALL else f"the {band} words"
    return (
        f"out of reach: a reader who sees no output is already expected to name {nearest:.1%} of "
        f"{words}, by public counts of words and by the unperturbed words beside them, so no "
        "epsilon gives less; ask for more, or perturb stop words (policy.stopwords: perturb, or "
        "S3)"
    )


class Unseeing(Adversary):
    """Adversary who sees no output, and always guesses the most frequent of W words."""

    def __init__(self, prior: Floats) -> None:
        self.log_prior: Floats = np.log(np.maximum(prior, NEVER))
        self.frequent = np.argsort(-prior, kind="stable")

    def candidates(
        self,
        outputs: Ids,
        epsilon: Floats,  # noqa: ARG002
        k: int,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Candidates:
        """Return the k most frequent words as the candidates of each of n outputs."""
        ids = np.tile(self.frequent[:k], (len(outputs), 1))
        return Candidates(ids, self.log_prior[ids])

    def log_likelihood(
        self,
        words: Ids,
        outputs: Ids,  # noqa: ARG002
        epsilon: Floats,  # noqa: ARG002
        before: Ids | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return 0 for all n words, because without outputs all words are equally likely."""
        return np.zeros(len(words))
