"""Unigram adversary of the mechanism 1-Diffractor, which adds noise to the positions of words in
lists. It uses the closed form of the output distribution within a window of each list.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.base import check_epsilon
from lexveil.core.mechanisms.word_lists import OnLists
from lexveil.readers.adversary import Adversary, Candidates

WORDS_AT_A_TIME = 64  # words per block, whose distributions are in memory together


class ListsAdversary(Adversary):
    """Adversary that guesses the source word w of an output y with the largest ln π(w) + ln of the
    mean over the lists of Pr[index of w becomes index of y].

    Only words near y in some list are scored. In a list of W words, the probability that an index i
    becomes the index j of y is at most c·exp(-s(|i-j|)), where s never decreases. Geometric noise
    has s(x) = ε·x and c = 1/(1+e^{-ε}), the weight of an end of the list; inside, the weight is
    smaller by the factor 1-e^{-ε}. The truncated exponential mechanism has s(x) = ε·min(x, γ)/2 and
    c = 1/Z(0), where Z(i) is the sum of the weights around i. Z is smallest at an end of the list,
    because the distances of the other indexes are 1, 2, 3, … there, and the sorted distances from
    any other index are nowhere larger. A mean is at most its largest term. So a word that is at
    distance r or more from y in every list has a score of at most max ln π + ln c - s(r). Words are
    scored in all lists at once, the nearest first. Once this bound falls below the k-th best score,
    no further word is among the k best. For k = 1 this happens at the latest when s(r) exceeds
    ln(max π / π(y)) + ln(c / Pr[M(y)=y]). So the number of scored words depends on the ratio of two
    priors, not on the size of the vocabulary. If s never reaches this value, because of γ, all
    words are scored.
    """

    def __init__(
        self,
        mechanism: OnLists,
        prior: Floats,
        epsilon_range: tuple[float, float] | None = None,  # noqa: ARG002 - no grid of epsilons
    ) -> None:
        self.mechanism = mechanism
        self._log_prior = np.log(prior)

    def candidates(
        self,
        outputs: Ids,
        epsilon: Floats,
        k: int,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Candidates:
        """Return the k most probable source words of each of n output words, as in ``Adversary``.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        from lexveil.readers.kernels.lists import decode

        check_epsilon(epsilon)
        lists = self.mechanism
        candidates = Candidates.unknown(len(outputs), min(k, lists.size))
        rates, limit = lists.decay(epsilon)
        decode(lists.orders, lists.places, self._log_prior, limit, outputs, rates, *candidates)
        return candidates

    def log_likelihood(
        self,
        words: Ids,
        outputs: Ids,
        epsilon: Floats,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return log-likelihoods ln Pr[M(w) = y] of n words and outputs, as in ``Adversary``."""
        log_likelihood = np.empty(len(words))
        channels, channel_of = np.unique(
            np.stack([words.astype(np.float64), epsilon]), axis=1, return_inverse=True
        )
        order = np.argsort(channel_of, kind="stable")
        starts = np.searchsorted(channel_of[order], np.arange(channels.shape[1] + 1))
        for start in range(0, channels.shape[1], WORDS_AT_A_TIME):
            block = channels[:, start : start + WORDS_AT_A_TIME]
            log_pmf = self.mechanism.log_pmf(block[0].astype(np.int64), block[1])
            pairs = order[starts[start] : starts[start + block.shape[1]]]
            log_likelihood[pairs] = log_pmf[channel_of[pairs] - start, outputs[pairs]]
        return log_likelihood
