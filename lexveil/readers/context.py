"""Adversary that uses the context of a word: it combines the candidates that the output word
suggests at each position with an n-gram model of word sequences.

Each position of a text is of one of three kinds: a certain token (which was kept), k candidates for
a replaced word, or unknown (the token was dropped, or drawn without using the source). Unknown
positions cut the text into chains. The probability of a candidate w after the symbol v is

    Pr[w | v] = λ·p₂(first(w) | v)·inner(w) + (1 - λ)·π(w)

Here p₂ is the bigram probability of the n-gram model. A collocation has several words: first(w) is
the first word of w, and inner(w) the probability of its other words, each after the word before. π
is the public frequency, which the unigram adversary uses, too. Frequencies occur only in Pr[w | v],
so the output contributes Pr[M(w)=y], and at λ = 0 the guesses are those of the unigram adversary.
At each position, the adversary guesses the candidate with the largest posterior probability given
the whole chain. Under this model no other rule has more correct words on average (forward-backward;
Rabiner 1989).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from lexveil.base.types import Floats, Ids, ModelRows, WordNumbers
from lexveil.core.language_models.kneser_ney import BigramModel
from lexveil.readers.adversary import Adversary, Candidates
from lexveil.readers.seen_tokens import NOT_CERTAIN, SeenTokens, Symbols, is_new

A = TypeVar("A", Ids, Floats)

CANDIDATES = 32  # greatest number of candidates of a position
# number of the unigram adversary's most probable words; the best between certain neighbours are
# chosen
LOOKED_AT = 128
# λ of the n-gram model: the best of the values tried on held-out texts
# (docs/explanation/recovery.md)
WEIGHT = 0.5
LIKELY = 15.0  # candidates that are more nats below the best unigram candidate are left out
# number of most frequent words, which are the candidates for guesses without any output
FREQUENT = 4096
POSITIONS = 65_536  # positions decoded per batch of whole texts
POSITIONS_OF_A_CHAIN = 2_048  # greatest number of positions of a chain; 16 MB of transitions
# pairs of neighbours per block, with FREQUENT words each: 16 MB
PAIRS = 512

SENTENCE_ENDS = frozenset((".", "!", "?", "…"))


class WordModel(Protocol):
    """Interface of an adversary's bigram language model."""

    def numbers(self, words: Iterable[str]) -> Ids:
        """Return the symbol number of each of n words, (n,); the number is -1 for a word that the
        model does not know.
        """
        ...

    def bigrams(self) -> BigramModel:
        """Return the bigram probabilities of the language model, by symbol numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Guesses:
    """An adversary's guesses of each replaced word, as numbers of the vocabulary, in the order of
    the texts.

    Attributes:
        by_word: guesses from the output word alone.
        by_context: guesses from the outputs of the text and the n-gram model.
        without_output: guesses from the n-gram model and the kept tokens; empty if not requested.
        by_neural: guesses from the outputs, both language models and the kept tokens; None without
            a neural model.
        knowing_rest: guesses by the neural model if all other source words of the text are known;
            None if the source words are not known.
    """

    by_word: Ids
    by_context: Ids
    without_output: Ids
    by_neural: Ids | None = None
    knowing_rest: Ids | None = None


class Chains(NamedTuple):
    """The n-gram adversary's knowledge about p replaced words, with k candidates each; all arrays
    are (p, k).

    Attributes:
        ids: candidate words.
        likelihood: Pr[M(w)=y], scaled so that the largest of each position is 1; 0 in empty places.
        posterior: posterior probability of each candidate, given its chain.
        follows: likelihood of the known text after each candidate, scaled so that the largest is 1.
    """

    ids: Ids
    likelihood: Floats
    posterior: Floats
    follows: Floats

    def best(self) -> Ids:
        """Return (p,) the candidate words with the largest posterior."""
        return likeliest(self.ids, self.posterior)


class ContextualAdversary:
    """Adversary that decodes texts of one mechanism over a vocabulary of W words, by the
    forward-backward algorithm over an n-gram model.
    """

    def __init__(
        self,
        adversary: Adversary,
        prior: Floats,
        model: WordModel,
        tokens: Sequence[Sequence[str]],
        weight: float = WEIGHT,
        *,
        with_output_only: bool = False,
    ) -> None:
        """Look up the words of the vocabulary in the language model.

        Args:
            adversary: the unigram adversary of the mechanism.
            prior: (W,) the prior with which that adversary was built.
            model: the bigram language model.
            tokens: the words of each of the W tokens.
            weight: λ, 0 to 1.
            with_output_only: skip the guesses without the output.
        """
        self.adversary = adversary
        self.prior = prior
        self.weight = weight
        self.with_output_only = with_output_only
        self.model, self.bigrams = model, model.bigrams()
        sizes = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        symbols = self._symbols([word for words in tokens for word in words])
        starts = np.cumsum(sizes) - sizes
        self.first = symbols[starts]
        self.last = symbols[starts + sizes - 1]
        follows = np.ones(len(symbols), dtype=np.bool_)
        follows[starts] = False
        steps = np.ones(len(symbols))
        at = np.flatnonzero(follows)
        steps[at] = self.bigrams.probability(symbols[at - 1], symbols[at])
        self.inner: Floats = np.multiply.reduceat(steps, starts)

    def _symbols(self, words: Sequence[str]) -> Ids:
        numbers = self.model.numbers(words)
        return np.where(numbers < 0, self.bigrams.unknown, numbers)

    def guess(self, tokens: SeenTokens) -> Guesses:
        """Guess the replaced words of texts, in batches."""
        n = len(tokens.text_of)
        is_certain = tokens.is_certain
        words = [word for word in tokens.certain if word is not None]
        ends_sentence = np.fromiter(
            (word in SENTENCE_ENDS for word in words), dtype=np.bool_, count=len(words)
        )
        first, last = (np.full(n, NOT_CERTAIN, dtype=np.int64) for _ in range(2))
        first[is_certain] = self._symbols(words)
        last[is_certain] = np.where(ends_sentence, self.bigrams.begin, first[is_certain])
        unknown = np.full(n, -1)
        whole = Symbols(
            text_of=tokens.text_of,
            outputs=tokens.outputs,
            epsilon=tokens.epsilon,
            first=first,
            last=last,
            before=ModelRows(unknown) if tokens.before is None else tokens.before,
            source=WordNumbers(unknown) if tokens.source is None else tokens.source,
            written=ModelRows(unknown) if tokens.written is None else tokens.written,
            certain=tokens.certain,
        )
        starts = np.flatnonzero(is_new(tokens.text_of))
        cuts = starts[is_new(starts // POSITIONS)].tolist() or [0]
        parts = [self.guess_part(whole.part(a, b)) for a, b in pairwise([*cuts, n])]
        return Guesses(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def guess_part(self, tokens: Symbols) -> list[Ids]:
        """Return the guesses of the source words in some texts, in the order of ``Guesses``."""
        return self.by_ngrams(tokens)[0]

    def by_ngrams(self, tokens: Symbols) -> tuple[list[Ids], Chains]:
        """Return the guesses of the n-gram adversary: by the output word, by context and without
        the output. Return also the posterior knowledge on which the guesses by context rest.
        """
        candidates = self.adversary.in_texts(tokens, LOOKED_AT)
        chains = self._decode(tokens, *self._suiting(candidates, *self._neighbours(tokens)))
        if self.with_output_only:
            return [candidates.ids[:, 0], chains.best(), np.empty(0, dtype=np.int64)], chains
        likely = self._without_output(tokens)
        blind = self._decode(tokens, likely, np.ones(likely.shape))
        return [candidates.ids[:, 0], chains.best(), blind.best()], chains

    def _suiting(self, candidates: Candidates, left: Ids, right: Ids) -> tuple[Ids, Floats]:
        """For each of p output words, select the CANDIDATES source words that are most probable
        between the kept neighbours of the output. The first candidate of an output is always
        selected.

        Returns:
            (p, k) words, and Pr[M(w)=y], scaled so that the largest of each position is 1; 0 for
            empty places and for candidates that are left out.
        """
        near = (candidates.ids >= 0) & (candidates.log_joint > candidates.log_joint[:, :1] - LIKELY)
        log_p = np.where(near, candidates.log_joint - np.log(self.prior[candidates.ids]), -np.inf)
        likelihood: Floats = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        # candidates are sorted by probability, so the omitted candidates come last
        width = int(near.sum(axis=1).max(initial=1))
        ids = candidates.ids[:, :width]
        likelihood = likelihood[:, :width]
        if width > CANDIDATES:
            scores = (
                likelihood * self._after(left[:, None], ids) * self._before(right[:, None], ids)
            )
            scores[:, 0] = np.inf  # the guess of the unigram adversary stays
            chosen = np.argsort(-scores, axis=1, kind="stable")[:, :CANDIDATES]
            ids = np.take_along_axis(ids, chosen, axis=1)
            likelihood = np.take_along_axis(likelihood, chosen, axis=1)
        return ids, likelihood / likelihood.max(axis=1, keepdims=True)

    def _without_output(self, tokens: Symbols) -> Ids:
        """Return, for each replaced word, the words that are most probable between its kept
        neighbours, without using the output; (p, k).
        """
        frequent = np.argsort(-self.prior, kind="stable")[:FREQUENT]
        left, right = self._neighbours(tokens)
        n_symbols = len(self.bigrams.single) + 1  # with NOT_CERTAIN
        pairs, place = np.unique((left + 1) * n_symbols + right + 1, return_inverse=True)
        k = min(CANDIDATES, len(frequent))
        chosen = np.empty((len(pairs), k), dtype=np.int64)
        for start in range(0, len(pairs), PAIRS):
            some = slice(start, start + PAIRS)
            before, after = (side[:, None] - 1 for side in np.divmod(pairs[some], n_symbols))
            scores = self._after(before, frequent) * self._before(after, frequent)
            chosen[some] = frequent[np.argsort(-scores, axis=1, kind="stable")[:, :k]]
        return chosen[place]

    def _after(self, symbols: Ids, words: Ids) -> Floats:
        """Return the probability Pr[w | v] of words w after each symbol v; the result for the
        symbol NOT_CERTAIN is the frequency of w. Symbols have the shape (n, 1), the result (n, m).
        """
        p = self.bigrams.probability(np.maximum(symbols, 0), self.first[words]) * self.inner[words]
        mixed = self.weight * p + (1 - self.weight) * self.prior[words]
        return np.where(symbols == NOT_CERTAIN, self.prior[words], mixed)

    def _before(self, symbols: Ids, words: Ids) -> Floats:
        """Return the probability Pr[v | w] of each symbol v after each word w; the result for the
        symbol NOT_CERTAIN is 1.
        """
        known = np.maximum(symbols, 0)
        mixed = self.weight * self.bigrams.probability(self.last[words], known)
        return np.where(
            symbols == NOT_CERTAIN, 1.0, mixed + (1 - self.weight) * self.bigrams.single[known]
        )

    def _neighbours(self, tokens: Symbols) -> tuple[Ids, Ids]:
        """Return the symbols of the kept tokens before and after each replaced word; the symbol is
        NOT_CERTAIN if that neighbour was not kept.
        """
        drawn = np.flatnonzero(tokens.outputs >= 0)
        is_first = is_new(tokens.text_of)
        left = np.where(is_first, self.bigrams.begin, np.roll(tokens.last, 1))
        right = np.where(np.roll(is_first, -1), NOT_CERTAIN, np.roll(tokens.first, -1))
        return left[drawn], right[drawn]

    def _decode(self, tokens: Symbols, ids: Ids, likelihood: Floats) -> Chains:
        """Run the forward-backward algorithm over (p, k) candidates at the p positions of replaced
        words.
        """
        from lexveil.readers.kernels.chains import ChainCandidates, marginals

        drawn = tokens.outputs >= 0
        certain = tokens.first != NOT_CERTAIN
        here = np.flatnonzero(drawn | certain)
        is_drawn = drawn[here]
        n_candidates = np.ones(len(here), dtype=np.int64)
        is_possible = likelihood > 0
        n_candidates[is_drawn] = is_possible.sum(axis=1)
        offsets = np.concatenate([[0], np.cumsum(n_candidates)])
        of_drawn = np.repeat(is_drawn, n_candidates)
        word = ids[is_possible]
        fixed = here[~is_drawn]

        def spread(candidates: A, others: A) -> A:
            values = np.empty(len(of_drawn), dtype=candidates.dtype)
            values[of_drawn] = candidates
            values[~of_drawn] = others
            return cast(A, values)

        chains, before = self._chains(tokens, here)
        candidates = ChainCandidates(
            spread(self.first[word], tokens.first[fixed]),
            spread(self.last[word], tokens.last[fixed]),
            spread(self.inner[word], np.ones(len(fixed))),
            spread(self.prior[word], self.bigrams.single[tokens.first[fixed]]),
            spread(likelihood[is_possible], np.ones(len(fixed))),
        )
        known = marginals(chains, before, offsets, candidates, self.weight, self.bigrams)
        posterior = np.full(ids.shape, -1.0)
        follows = np.zeros(ids.shape)
        posterior[is_possible], follows[is_possible] = (of[of_drawn] for of in known)
        return Chains(ids, likelihood, posterior, follows)

    def _chains(self, tokens: Symbols, here: Ids) -> tuple[Ids, Ids]:
        """Return the chains into which the positions ``here`` divide: the first position of each
        chain, then the number of positions; and the symbol before each chain.
        """
        if not len(here):
            return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
        cut = is_new(tokens.text_of[here]) | np.append(True, np.diff(here) > 1)
        starts = np.flatnonzero(cut)
        inside = np.arange(len(here)) - np.repeat(starts, np.diff(starts, append=len(here)))
        starts = np.flatnonzero(inside % POSITIONS_OF_A_CHAIN == 0)
        before = np.where(is_new(tokens.text_of)[here[starts]], self.bigrams.begin, NOT_CERTAIN)
        return np.append(starts, len(here)), before


def likeliest(ids: Ids, scores: Floats) -> Ids:
    """Return the word with the largest score in each row of (p, k) words; shape (p,)."""
    best: Ids = np.take_along_axis(ids, scores.argmax(axis=1)[:, None], axis=1)[:, 0]
    return best
