"""The contextual adversary by a language model such as a transformer, which reads on from all the words before.

A candidate w has, after the words v₁ … vₘ of its chain as they are guessed,

    Pr[w | v₁ … vₘ] = λ·p(w | v₁ … vₘ) + (1 - λ)·π(w)

p is of the language model, π the public frequency, and chains are those of ``NgramAdversary``. From left to right the
candidate with the largest Pr[w | v₁ … vₘ]·Pr[M(w)=y] is guessed; at λ = 0 these are the guesses by the word.

All words of a chain are guessed at once after those that were guessed before them, until nothing changes: then each
guess follows from the ones before it, as if they had been made one by one (Jacobi iteration; Santilli et al. 2023). The
first i words are final after i sweeps, most after two or three; after ``SWEEPS`` the guesses are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lexveil.evaluation.base import NextWord, together
from lexveil.recovery.adversary import Adversary, Candidates
from lexveil.recovery.context import FREQUENT, LOOKED_AT, POSITIONS, WEIGHT, Guesses, Tokens
from lexveil.types import Flags, Floats, Ids

SWEEPS = 8
PLACES = 512  # words of chains at a time, of which none is cut; with FREQUENT candidates each, 16 MB a table


class LeftToRightAdversary:
    """Decodes texts of one mechanism over one vocabulary of W words."""

    def __init__(
        self, adversary: Adversary, prior: Floats, model: NextWord, names: Sequence[str], weight: float = WEIGHT
    ) -> None:
        """Take what the reader knows.

        Args:
            adversary: the unigram one of the mechanism.
            prior: (W,) that the adversary was built with.
            model: of the W words.
            names: of the W words, those of a collocation with spaces between.
            weight: λ, 0 to 1.
        """
        self.adversary, self.prior, self.model, self.names, self.weight = adversary, prior, model, names, weight

    def guess(self, tokens: Tokens) -> Guesses:
        """Decode texts, some at a time."""
        frequent = np.argsort(-self.prior, kind="stable")[:FREQUENT]
        flat = np.log(self.prior[frequent])
        empty = np.empty(0, dtype=np.int64)
        by_word, by_context, alone = [empty], [empty], [empty]
        chains = self._chains(tokens)
        for some in together(chains, _positions, POSITIONS):
            outputs = np.concatenate([tokens.outputs[chain] for chain in some])
            epsilon = np.concatenate([tokens.epsilon[chain] for chain in some])
            drawn = outputs >= 0
            found = self.adversary.candidates(outputs[drawn], epsilon[drawn], LOOKED_AT)
            by_word.append(found.ids[:, 0])
            done = 0
            for few in together(some, _positions, PLACES):
                words = [tokens.certain[at] for chain in few for at in range(chain.start, chain.stop)]
                sizes = [chain.stop - chain.start for chain in few]
                n = sum(word is None for word in words)
                here = slice(done, done + n)
                done += n
                by_context.append(self.decode(words, sizes, Candidates(found.ids[here], found.log_joint[here])))
                shape = (n, len(frequent))
                without = Candidates(np.broadcast_to(frequent, shape), np.broadcast_to(flat, shape))
                alone.append(self.decode(words, sizes, without))
        return Guesses(np.concatenate(by_word), np.concatenate(by_context), np.concatenate(alone))

    def decode(self, words: Sequence[str | None], sizes: Sequence[int], found: Candidates) -> Ids:
        """The guess at each of p replaced words of some chains, of its candidates by the word, (p,).

        Args:
            words: of all chains, one after the other; None where one was replaced.
            sizes: of the chains.
            found: of the p replaced words.
        """
        ids, log_joint = found
        chain_of, column = _numbered(sizes)
        replaced = np.fromiter((word is None for word in words), dtype=np.bool_, count=len(words))
        row, column = chain_of[replaced], column[replaced]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        log_prior = np.log(self.prior[ids])
        least = self._least(log_joint, log_prior)
        guesses: Ids = ids[:, 0].copy()
        changed = np.unique(row)
        for _ in range(SWEEPS):
            full = list(words)
            for place, guess in zip(np.flatnonzero(replaced).tolist(), guesses.tolist(), strict=True):
                full[place] = self.names[guess]
            texts = [full[bounds[chain] : bounds[chain + 1]] for chain in changed.tolist()]
            at = np.flatnonzero(np.isin(row, changed))
            if not len(at):
                break
            number = np.searchsorted(changed, row[at])
            log_p = self.model.log_probability(texts, number, column[at], ids[at], least[at])  # type: ignore[arg-type]
            with np.errstate(divide="ignore"):
                mixed = np.logaddexp(np.log(self.weight) + log_p - log_prior[at], np.log1p(-self.weight))
            best = np.where(log_joint[at] == -np.inf, -np.inf, log_joint[at] + mixed).argmax(axis=1)
            new = np.take_along_axis(ids[at], best[:, None], axis=1)[:, 0]
            changed = np.unique(row[at][new != guesses[at]])
            guesses[at] = new
        return guesses

    def _least(self, log_joint: Floats, log_prior: Floats) -> Floats:
        """What ln p of each candidate must exceed, (p, k), to win over the first one even if the p of that is 0."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            lead = log_joint[:, :1] - log_joint
            least = log_prior + np.log1p(-self.weight) - np.log(self.weight) + np.log(np.expm1(lead))
        return np.where(log_joint == -np.inf, np.inf, np.where(lead == 0, -np.inf, least))

    def _chains(self, tokens: Tokens) -> list[slice]:
        """The parts of texts in which every word is certain or replaced, without those where none was."""
        drawn = tokens.outputs >= 0
        here = np.flatnonzero(drawn | tokens.is_certain)
        cut: Flags = np.ones(len(here), dtype=np.bool_)
        cut[1:] = (np.diff(here) > 1) | (np.diff(tokens.text_of[here]) != 0)
        bounds = pairwise([*np.flatnonzero(cut).tolist(), len(here)])
        chains = [slice(int(here[start]), int(here[end - 1]) + 1) for start, end in bounds]
        return [chain for chain in chains if drawn[chain].any()]


def _numbered(sizes: Sequence[int]) -> tuple[Ids, Ids]:
    """The chain of each position, and its number inside the chain."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - np.asarray(sizes, dtype=np.int64)
    return of, np.arange(len(of)) - starts[of]


def _positions(chain: slice) -> int:
    return int(chain.stop - chain.start)
