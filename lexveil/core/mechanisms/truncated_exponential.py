"""Base class of exact samplers of truncated exponential weights, exp(-ε·min(d, γ)/2).

A compiled sampler proposes and accepts. If rounding could change a decision, the sampler leaves the
draw undecided, and decimal arithmetic decides it here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from lexveil.base.types import Floats, Ids, Words
from lexveil.core.mechanisms.base import EuclideanMechanism, check_epsilon
from lexveil.core.mechanisms.rejection import UNDECIDED, Draws

LENGTH_BITS = 62  # bits of the total length of all envelopes
DIGITS_OF_DECISIONS = 60  # decimal digits of exact decisions
FIRST_NONCE = 2  # first nonce of the streams of exact decisions; 0 and 1 are for proposals


class TruncatedExponential(EuclideanMechanism):
    """Base class of the mechanisms that draw y for x with weight exp(-ε·min(d(x,y), γ)/2), γ =
    (2/ε)·ln((1-β)(V-1)/β).

    Source: Carvalho et al. (2023), Algorithms 2 and 3; γ from Theorem 4.2.

    Attributes:
        beta: in (0, 1); the probability of an output beyond γ is at most this.
        bits: the weight at distance 0 is 2 to this power.
    """

    beta: float
    bits: int

    def gamma(self, epsilon: Floats) -> Floats:
        """Return γ for each epsilon: the radius beyond which all outputs have the same weight, in
        embedding units.
        """
        return truncation(epsilon, self.beta, self.size)

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Words:
        """Draw the key of each draw's random stream, (n, 4) uint64.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        from lexveil.core.mechanisms.noise.keystream import KEY_WORDS, draw_words

        check_epsilon(epsilon)
        return draw_words(len(epsilon), KEY_WORDS, rng)

    def log_weights(self, distances: Floats, epsilon: Floats) -> Floats:
        """Return the log weights -ε·min(d, γ)/2 at the distances d (n, V), for n epsilons.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        check_epsilon(epsilon)
        score = np.minimum(distances, self.gamma(epsilon)[:, None])
        log_weights: Floats = -epsilon[:, None] / 2 * score
        return log_weights

    def rounding(self, epsilon: Floats) -> Floats:
        """Return an upper bound on how much the rounding of distances increases the privacy loss
        of each draw, in nats; shape (n,).

        The differences of float32 coordinates are rounded once in float64, their squares once, the
        sum p - 1 times in any order, and the root once. So d has a relative error of at most (p +
        4)·2^-53. An error r of all scores min(d, γ) changes the weights and their sum by a factor
        of exp(ε·r/2) each, for both inputs. The bound is therefore 2·ε·r, where r <= γ·(p +
        4)·2^-53.
        """
        relative_error = (self.vectors.shape[1] + 4) * 2.0**-53
        bound: Floats = 2 * relative_error * epsilon * self.gamma(epsilon)
        return bound

    def accepts(self, distance: float, draws: Draws, draw: int, nonce: int) -> bool:
        """Return whether the proposal of an undecided draw is accepted, by exact arithmetic.

        Args:
            distance: distance of the proposal from the input.
            draw: row of the draw.
            nonce: number of the stream that continues the position of the proposal.
        """
        half = float(draws.epsilon[draw]) / 2
        score = min(distance, float(draws.gamma[draw]))
        position = int(draws.doubts[draw, 1])
        return is_accepted((half, score), position, self.bits, draws.keys[draw], nonce)


def draw_until_decided(
    sample: Callable[[Draws, Ids], Ids],
    accepts: Callable[[Draws, int], bool],
    draws: Draws,
    chosen: Ids,
    out: Ids,
) -> None:
    """Make the chosen draws and write the results to ``out``. A draw that rounding could change is
    decided by exact arithmetic.

    Args:
        sample: function that makes some draws, given also their rows, and records the undecided
            proposals in them.
        accepts: function that decides whether the proposal of an undecided draw is accepted, given
            the row of the draw.
    """
    while len(chosen):
        some = take(draws, chosen)
        out[chosen] = sample(some, chosen)
        draws.doubts[chosen] = some.doubts
        undecided = chosen[out[chosen] == UNDECIDED]
        for draw in undecided.tolist():
            proposed, _, attempt = draws.doubts[draw].tolist()
            if accepts(draws, draw):
                out[draw] = proposed
            draws.refused[draw] = attempt + 1
        chosen = undecided[out[undecided] == UNDECIDED]


def take(draws: Draws, chosen: Ids) -> Draws:
    """Return the chosen rows of a table of draws."""
    return Draws._make(column[chosen] for column in draws)


def is_accepted(
    exponent: tuple[float, float], position: int, bits: int, key: Words, nonce: int
) -> bool:
    """Return, by exact arithmetic, whether a real position in [position, position + 1) is below
    2^bits·exp(-half·distance).

    Args:
        exponent: half and distance.
        key: (4,) key of the stream whose bits continue the position.
    """
    from lexveil.core.mechanisms.noise.keystream import expand

    half, distance = exponent
    n_bytes = 0
    while True:
        n_bytes += 8
        fraction = int.from_bytes(expand(key, n_bytes, nonce), "big")
        with decimal.localcontext() as context:
            context.prec = DIGITS_OF_DECISIONS + 3 * n_bytes
            power = -Decimal(half) * Decimal(distance)
            low = Decimal(position) + Decimal(fraction) / Decimal(2) ** (8 * n_bytes)
            high = Decimal(position) + Decimal(fraction + 1) / Decimal(2) ** (8 * n_bytes)
            limit = Decimal(2) ** bits * power.exp()
            # margin far larger than the rounding errors of the lines above
            error = limit * Decimal(10) ** (10 - context.prec)
            if high <= limit - error:
                return True
            if low >= limit + error:
                return False
            if not power:
                return True  # at distance 0 the limit is 2^bits, which no position reaches


def truncation(epsilon: Floats, beta: float, n_words: int) -> Floats:
    """Return the truncation radius γ = (2/ε)·ln((1-β)(V-1)/β), Theorem 4.2; 0 if this value is
    negative or V is 1.
    """
    if n_words < 2:
        return np.zeros(len(epsilon))
    gamma: Floats = np.maximum(
        0.0, 2 / epsilon * (np.log1p(-beta) + np.log(n_words - 1) - np.log(beta))
    )
    return gamma
