"""TEM, the Truncated Exponential Mechanism, over the sentences of a public sentence bank, for any
query vector.

A word mechanism takes ids, which are rows of its vocabulary. This mechanism takes query vectors,
and the query need not be the vector of a sentence in the bank.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lexveil.base.types import Floats, Ids, Int32, Int64, Vectors, Words
from lexveil.core.mechanisms.rejection import Draws
from lexveil.core.mechanisms.tem import TemParameters
from lexveil.core.mechanisms.truncated_exponential import (
    FIRST_NONCE,
    LENGTH_BITS,
    TruncatedExponential,
    draw_until_decided,
)

EXACT = (
    2**24
)  # float32 represents whole numbers up to this exactly, so sums and products up to it are exact
BUCKETS = 2048  # greatest number of buckets of squared distances
SENTENCES_AT_A_TIME = 64  # sentences per sum of envelopes
PRODUCT = 128 * SENTENCES_AT_A_TIME  # sentences per matrix product
QUERIES = 256  # queries per block
SLACK = 1e-9  # relative margin of bounds on the distance, far larger than rounding errors


class _Whole(NamedTuple):
    """Vectors rounded to whole steps, with their squared lengths."""

    vectors: Vectors
    squares: Int32


class SentenceDraws(TruncatedExponential):
    """Replace a unit s (a sentence or a text) by a sentence y of a public sentence bank with
    probability proportional to exp(-ε·min(d(s,y), γ)/2), γ = (2/ε)·ln((1-β)(N-1)/β), d the
    Euclidean distance of their vectors.

    Source: Carvalho et al. (2023) for the mechanism over words. Here the input is any unit that has
    a vector (a sentence or a text), and the output is one of the N sentences of a public bank.

    Privacy: ε·d metric DP over all units. d is a pseudo-metric, since the vector is a function of
    the unit: when s becomes s', min(d, γ) changes by at most d(s,s'), the weights by a factor of at
    most exp(ε·d/2), and so does their sum. No two units are farther apart than the diameter D, so a
    draw is also ε·D locally private (docs/proofs/sentences.md).

    Sampling is by rejection, which is exact for any envelope (upper bound on a weight). The
    envelopes of the bank's sentences follow from distances of coordinates in whole steps, which
    float32 products compute exactly. Whether a proposed sentence is accepted depends on its own
    distance. Decimal arithmetic makes the decisions that rounding could change, as in ``Tem``.

    Attributes:
        vectors: (N, p) float32, the sentences of the bank.
        radius: upper bound on the length of the bank's vectors and of query vectors.
        beta: in (0, 1); upper bound on the probability of a sentence beyond γ.
    """

    name = "tem"
    metric = "Euclidean distance of sentence vectors"
    unit = "sentence distance"
    guarantee = "Pr[M(s)=y] <= exp(ε·d(s,s'))·Pr[M(s')=y]"
    exactness = (
        "sentences are drawn exactly by their weights; the rounding of distances to float64 adds "
        "less than 1e-10 to the exponent for each draw"
    )
    sampled = "a uniform draw from the bank"
    Parameters = TemParameters

    def __init__(self, vectors: Vectors, radius: float, beta: float = TemParameters().beta) -> None:
        # no search structure is built, because every draw uses the whole bank
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)[:]
        self.vectors.flags.writeable = False
        self.size = len(self.vectors)
        self.beta = self.checked(TemParameters, {"beta": beta}).beta
        self.radius = radius
        p = self.vectors.shape[1]
        # steps per unit of length, chosen so that no product of two rounded vectors reaches EXACT
        self.steps = (EXACT**0.5 - 2 - p**0.5 / 2) / (radius * (1 + 1e-6))
        self.bits = min(52, LENGTH_BITS - (2 * self.size + 1).bit_length())
        self._bank = self._whole(self.vectors)
        # Bound on the parts of two vectors that rounding removes. It is the same for all vectors,
        # so that envelopes, and with them the draw that a key gives, do not depend on the batch.
        self._left_out = p**0.5 / self.steps
        self.shift = max(0, (4 * EXACT).bit_length() - BUCKETS.bit_length())

    def _whole(self, vectors: Vectors) -> _Whole:
        buffers = _Whole(np.empty_like(vectors), np.empty(len(vectors), dtype=np.int32))
        # in blocks, because a large bank in double precision takes more memory than the bank itself
        for start in range(0, len(vectors), PRODUCT):
            block = slice(start, start + PRODUCT)
            whole = np.rint(vectors[block].astype(np.float64) * self.steps)
            squares = np.einsum("np,np->n", whole, whole)
            if squares.max(initial=0) >= EXACT:
                raise ValueError(f"a vector is longer than {self.radius:g}")
            buffers.vectors[block] = whole
            buffers.squares[block] = squares
        return buffers

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw a replacement sentence for each of some sentences of the bank itself."""
        return self.replace_queries(self.vectors, ids, epsilon, noise)

    def replace_queries(self, queries: Vectors, of: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw a replacement sentence for each draw of a query vector.

        Args:
            queries: (q, p) vectors, none longer than ``radius``.
            of: (n,) the query of each draw.
            epsilon, noise: the epsilon and the noise of each draw.

        Returns:
            (n,) rows of the bank.
        """
        out = np.empty(len(of), dtype=np.int64)
        order = np.argsort(of, kind="stable")
        cuts = np.searchsorted(of[order], np.arange(0, len(queries) + QUERIES, QUERIES))
        for number, (start, stop) in enumerate(pairwise(cuts.tolist())):
            chosen = order[start:stop]
            if len(chosen):
                first = number * QUERIES
                block = np.ascontiguousarray(queries[first : first + QUERIES], dtype=np.float32)
                out[chosen] = self._replace(
                    block, of[chosen] - first, epsilon[chosen], noise[chosen]
                )
        return out

    def _replace(self, queries: Vectors, of: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw replacement sentences for a few queries. A query that is drawn with several ε
        counts once for each.
        """
        from lexveil.core.mechanisms.kernels import sentence_draws as sampler

        if self.vectors.shape[1] != queries.shape[1]:
            raise ValueError(f"query vectors have {queries.shape[1]} coordinates")
        pairs, number = np.unique(np.stack([of, epsilon]), axis=1, return_inverse=True)
        queries = queries[pairs[0].astype(np.int64)]
        different, table_of = np.unique(pairs[1], return_inverse=True)
        whole = self._whole(queries)
        tables = self._envelopes(different)
        sums = self._sums(whole, tables, table_of)
        draws = Draws(
            inputs=number.ravel().astype(np.int64),
            epsilon=epsilon,
            gamma=self.gamma(epsilon),
            keys=noise,
            refused=np.zeros(len(of), dtype=np.int64),
            doubts=np.empty((len(of), 3), dtype=np.int64),
        )
        bank = sampler.Bank(self.vectors, self._bank.vectors, self._bank.squares)
        asked = sampler.Bank(queries, whole.vectors, whole.squares)

        def sample(some: Draws, _: Ids) -> Ids:
            drawn: Ids = sampler.draw(
                bank,
                asked,
                sums,
                SENTENCES_AT_A_TIME,
                tables,
                table_of,
                self.shift,
                some,
                self.bits,
            )
            return drawn

        def accepts(draws: Draws, draw: int) -> bool:
            proposed, _, attempt = draws.doubts[draw].tolist()
            query = queries[draws.inputs[draw]]
            distance = float(distances_to(self.vectors[proposed : proposed + 1], query)[0])
            return self.accepts(distance, draws, draw, FIRST_NONCE + attempt)

        out = np.empty(len(of), dtype=np.int64)
        draw_until_decided(sample, accepts, draws, np.arange(len(of)), out)
        return out

    def _envelopes(self, epsilon: Floats) -> Int64:
        """Return (t, buckets) envelopes: whole numbers that bound the weights of sentences from
        above. The number of a bucket bounds all sentences whose squared distance in whole steps
        lies in this bucket.

        Rounding can make the distance of two vectors larger than their true distance, by at most
        the part of both vectors that rounding removes.
        """
        n_buckets = ((4 * EXACT) >> self.shift) + 1
        nearest = np.sqrt(np.arange(n_buckets, dtype=np.float64) * 2.0**self.shift) / self.steps
        nearest = nearest * (1 - SLACK) - self._left_out * (1 + SLACK) - SLACK
        score = np.minimum(np.maximum(nearest, 0.0), self.gamma(epsilon)[:, None])
        weight = np.exp(-epsilon[:, None] / 2 * score) * (1 + SLACK)
        scale = 1 << self.bits
        whole: Int64 = np.minimum(np.floor(weight * scale) + 1, scale).astype(np.int64)
        return whole

    def _sums(self, queries: _Whole, tables: Int64, table_of: Ids) -> Int64:
        """Return (q, blocks) the sums of the envelopes (upper bounds on weights) over each block
        of sentences.
        """
        from lexveil.core.mechanisms.kernels.sentence_draws import add_envelopes

        sums = np.empty(
            (len(queries.squares), -(-self.size // SENTENCES_AT_A_TIME)), dtype=np.int64
        )
        bank = self._bank
        for start in range(0, self.size, PRODUCT):
            products = queries.vectors @ bank.vectors[start : start + PRODUCT].T
            of_bank = bank.squares[start : start + PRODUCT]
            first = start // SENTENCES_AT_A_TIME
            add_envelopes(
                products,
                queries.squares,
                of_bank,
                tables,
                table_of,
                self.shift,
                SENTENCES_AT_A_TIME,
                sums[:, first : first + PRODUCT // SENTENCES_AT_A_TIME],
            )
        return sums

    def log_pmf_of(self, queries: Vectors, epsilon: Floats) -> Floats:
        """Return the log probability ln Pr[M(s) = y] of every bank sentence y for each of n query
        vectors, (n, N).
        """
        distances = np.array([distances_to(self.vectors, query) for query in queries])
        log_weight = self.log_weights(distances, epsilon)
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:  # noqa: ARG002
        """Return the log probability ln Pr[M(s) = y] of every bank sentence y for each of n
        sentences of the bank, (n, N).
        """
        return self.log_pmf_of(self.vectors[ids], epsilon)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d plus a bound on the loss that rounding of distances can
        add.
        """
        return epsilon * distance + self.rounding(epsilon)


def distances_to(vectors: Vectors, query: Vectors) -> Floats:
    """Return (m,) the Euclidean distances from m vectors to one query vector, in float64."""
    difference = vectors.astype(np.float64) - query.astype(np.float64)
    distances: Floats = np.sqrt(np.einsum("np,np->n", difference, difference))
    return distances
