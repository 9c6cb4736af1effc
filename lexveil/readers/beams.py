"""Adversary with a neural language model, which decodes texts by beam search and scores each word
after the text of its own beam.

From left to right every replaced position of a text gets a word in each of b beams. The probability
of a candidate w after a beam is

    Pr[w | beam] = λ·p(first(w) | beam)·π(w | first(w)) / Σ p(first) + (1 - λ)·Pr[w | v]

Here p is the neural model's probability of the first piece of w, and π(w | first(w)) the public
share of w among the words that begin with this piece. The sum runs over the first pieces of all
words that can be replaced, because it is not hidden that a word was replaced. Pr[w | v] is the
probability by the n-gram model after the last word v of the beam (``ContextualAdversary``). The
weight of a beam is the product of Pr[w | beam]·Pr[M(w)=y] over its words. The n-gram model also
gives the probability of the rest of the text after each word (``Chains.follows``). For each w, the
product of weight and probability of the rest is summed over the beams. The guess is the w with the
largest sum; then the most probable pairs of beam and word continue. With beams for all texts and λ
= 0 the guesses are those of forward-backward.

The adversary who knows the rest of the text has one beam, the true text, and knows the next word.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.text.piece_models import PieceModel
from lexveil.readers.adversary import Adversary
from lexveil.readers.context import Chains, ContextualAdversary, WordModel, likeliest
from lexveil.readers.seen_tokens import NOT_CERTAIN, Symbols, is_new

BEAMS = 4
SHARE = 0.5  # λ
POSITIONS = 192  # positions per part; longer texts are divided
TEXTS = 32  # parts read in parallel
LEAST_PRIOR = 1e-100  # words with a smaller prior are never candidates
OF_BEAM = NOT_CERTAIN - 1  # placeholder for the symbol of the last word of the beam


class _Part(NamedTuple):
    """A text, or a part of it, that is decoded as a whole.

    Attributes:
        words: (q,) numbers of its replaced words.
        kept: for each replaced word, the word pieces of the kept words before it.
    """

    words: list[int]
    kept: list[list[int]]

    @property
    def length(self) -> tuple[int, int]:
        return len(self.words), sum(map(len, self.kept))


class _Known(NamedTuple):
    """An adversary's knowledge about p replaced words before the beam search.

    Attributes:
        chains: knowledge from the n-gram model.
        before: (p,) the symbol before each replaced word; OF_BEAM if that symbol is the last word
            of a beam.
        true: (p,) the true words, for the adversary who knows the rest of the text; for other
            adversaries None.
    """

    chains: Chains
    before: Ids
    true: Ids | None


class BeamAdversary(ContextualAdversary):
    """Contextual adversary that decodes texts by beam search, with a neural language model and
    n-grams. It also returns the guesses of ``ContextualAdversary``.
    """

    def __init__(
        self,
        adversary: Adversary,
        prior: Floats,
        model: WordModel,
        tokens: Sequence[Sequence[str]],
        neural: PieceModel,
        n_beams: int = BEAMS,
        share: float = SHARE,
    ) -> None:
        """Prepare the adversary, and split the words of the vocabulary into the pieces of the
        neural model.

        Args:
            adversary, prior, model, tokens: as in ``ContextualAdversary``.
            neural: the neural language model.
            n_beams: number of beams.
            share: λ, 0 to 1.
        """
        super().__init__(adversary, prior, model, tokens)
        self.neural = neural
        self.n_beams = n_beams
        self.share = share
        self.pieces = neural.pieces(tokens)
        first = np.array([pieces[0] for pieces in self.pieces])
        meant = prior > LEAST_PRIOR
        self.first_pieces = np.unique(first[meant])
        self.first_piece = np.searchsorted(self.first_pieces, first) % len(self.first_pieces)
        of_pieces = np.bincount(self.first_piece[meant], prior[meant])
        self.of_piece: Floats = meant * prior / of_pieces[self.first_piece]

    def guess_part(self, tokens: Symbols) -> list[Ids]:
        """Return the guesses of the source words in some texts, in the order of ``Guesses``."""
        by_ngrams, chains = self.by_ngrams(tokens)
        is_drawn = tokens.outputs >= 0
        last = np.where(is_drawn, OF_BEAM, tokens.last)
        before = np.where(is_new(tokens.text_of), self.bigrams.begin, np.roll(last, 1))[is_drawn]
        readings = [(_Known(chains, before, None), self.n_beams)]
        true = tokens.source[is_drawn]
        if len(true) and true.min() >= 0:
            first = np.where(is_drawn, self.first[tokens.source], tokens.first)
            after = np.where(np.roll(is_new(tokens.text_of), -1), NOT_CERTAIN, np.roll(first, -1))[
                is_drawn
            ]
            follows = self._before(after[:, None], chains.ids)
            readings.append((_Known(chains._replace(follows=follows), before, true), 1))
        guesses = [np.zeros(len(true), dtype=np.int64) for _ in readings]
        parts = sorted(self._parts(tokens), key=lambda part: part.length)
        for start in range(0, len(parts), TEXTS):
            for (known, n_beams), guessed in zip(readings, guesses, strict=True):
                _Reading(self, parts[start : start + TEXTS], known, n_beams).run(guessed)
        return [*by_ngrams, *guesses]

    def _parts(self, tokens: Symbols) -> Iterator[_Part]:
        """Yield the texts that contain replaced words; a long text is divided into several
        parts.
        """
        pieces = iter(self.neural.pieces([[word] for word in tokens.certain if word is not None]))
        part = _Part([], [])
        run = list[int]()
        start = 0
        n_words = 0
        begins = is_new(tokens.text_of).tolist()
        for at, (output, words) in enumerate(
            zip(tokens.outputs.tolist(), tokens.certain, strict=True)
        ):
            if begins[at] or at - start == POSITIONS:
                if part.words:
                    yield part
                part = _Part([], [])
                run = []
                start = at
            if output >= 0:
                part.words.append(n_words)
                part.kept.append(run)
                run = []
                n_words = n_words + 1
            elif words is not None:
                run += next(pieces)
        if part.words:
            yield part

    def scores(self, next_pieces: Floats, symbols: Ids, words: Ids) -> Floats:
        """Return ln Pr[w | beam] of k words after b beams of n texts, (n, b, k).

        Args:
            next_pieces: (n, b, first pieces) probabilities among the first pieces of words.
            symbols: (n, b) the last word of each beam, as a symbol.
            words: (n, k).
        """
        own = (
            np.take_along_axis(next_pieces, self.first_piece[words][:, None], axis=2)
            * self.of_piece[words][:, None]
        )
        by_ngrams = self._after(symbols[:, :, None], words[:, None])
        with np.errstate(divide="ignore"):
            mixed: Floats = np.log(self.share * own + (1 - self.share) * by_ngrams)
        return mixed


class _Reading:
    """State of a beam search over t parts of texts. The parts are read from left to right; each
    step reads one word piece of each beam.
    """

    def __init__(
        self, adversary: BeamAdversary, parts: Sequence[_Part], known: _Known, n_beams: int
    ) -> None:
        self.adversary = adversary
        self.parts = parts
        self.known = known
        self.states = adversary.neural.begin(len(parts), n_beams)
        self.weights = np.full((len(parts), n_beams), -np.inf)
        self.weights[:, 0] = 0.0  # all beams begin in the same state
        self.last = np.full((len(parts), n_beams), NOT_CERTAIN)
        self.to_read = [[deque(part.kept[0]) for _ in range(n_beams)] for part in parts]
        self.done = np.zeros(len(parts), dtype=np.int64)

    def run(self, guesses: Ids) -> None:
        """Run the beam search, and write the guess of each replaced word into ``guesses``."""
        sizes = np.array([len(part.words) for part in self.parts])
        while (open_parts := np.flatnonzero(self.done < sizes)).size:
            is_ready = [not any(self.to_read[part]) for part in open_parts.tolist()]
            if (ready := open_parts[is_ready]).size:
                words = np.array(
                    [self.parts[part].words[self.done[part]] for part in ready.tolist()]
                )
                guesses[words] = self._decide(ready, words)
                self.done[ready] += 1
                for part in ready[self.done[ready] < sizes[ready]].tolist():
                    for pieces in self.to_read[part]:
                        pieces.extend(self.parts[part].kept[self.done[part]])
            else:
                is_read = np.array([[bool(pieces) for pieces in beams] for beams in self.to_read])
                read = [
                    [pieces.popleft() if pieces else 0 for pieces in beams]
                    for beams in self.to_read
                ]
                self.states.read(np.array(read), is_read)

    def _decide(self, ready: Ids, words: Ids) -> Ids:
        """Guess the current source word of each of n parts, and keep the most probable beams."""
        adversary = self.adversary
        chains = self.known.chains
        ids = chains.ids[words]
        n = len(ready)
        n_beams = self.weights.shape[1]
        before = self.known.before[words][:, None]
        symbols = np.where(before == OF_BEAM, self.last[ready], before)
        with np.errstate(divide="ignore"):
            likelihood, follows = (
                np.log(of[words])[:, None] for of in (chains.likelihood, chains.follows)
            )
        own = adversary.scores(self.states.next_pieces(ready, adversary.first_pieces), symbols, ids)
        joint = (self.weights[ready][:, :, None] + own + likelihood).reshape(n, -1)
        ahead = joint + np.broadcast_to(follows, own.shape).reshape(n, -1)
        ahead -= ahead.max(axis=1, keepdims=True)
        if self.known.true is None:
            best = np.argsort(-ahead, axis=1, kind="stable")[:, np.arange(n_beams) % ahead.shape[1]]
            parents, columns = np.divmod(best, ids.shape[1])
            going_on = np.take_along_axis(ids, columns, axis=1)
            weights = np.take_along_axis(joint, best, axis=1)
            weights[:, ahead.shape[1] :] = -np.inf
            self.weights[ready] = weights - weights[:, :1]
        else:
            parents = np.zeros((n, 1), dtype=np.int64)
            going_on = self.known.true[words][:, None]
        self.last[ready] = adversary.last[going_on]
        for part, beams, chosen in zip(ready.tolist(), parents, going_on.tolist(), strict=True):
            self.states.fork(part, beams)
            self.to_read[part] = [deque(adversary.pieces[word]) for word in chosen]
        return likeliest(ids, np.exp(ahead).reshape(own.shape).sum(axis=1))


def contextual_adversary(
    adversary: Adversary,
    prior: Floats,
    model: WordModel,
    tokens: Sequence[Sequence[str]],
    neural: PieceModel | None,
) -> ContextualAdversary:
    """Build the strongest adversary that uses the context of a word: with beam search if there is a
    neural model, otherwise with n-grams only.
    """
    if neural is None:
        return ContextualAdversary(adversary, prior, model, tokens)
    return BeamAdversary(adversary, prior, model, tokens, neural)
