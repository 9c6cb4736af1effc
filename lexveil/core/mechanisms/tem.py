"""TEM, the Truncated Exponential Mechanism: the probability of an output word decreases with its
distance up to γ, and is constant beyond γ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from lexveil.base.parameters import Section
from lexveil.base.types import Flags, Floats, Ids, Vectors, Words
from lexveil.core.mechanisms.base import Space, register
from lexveil.core.mechanisms.rejection import PENDING, Draws
from lexveil.core.mechanisms.truncated_exponential import (
    FIRST_NONCE,
    LENGTH_BITS,
    TruncatedExponential,
    draw_until_decided,
)

if TYPE_CHECKING:
    from lexveil.core.embeddings.neighborhoods import NearTable, Neighborhoods

# greatest expected number of uniform proposals at which a token is drawn without its word's list
UNIFORM = 16
ATTEMPTS = 2048  # uniform proposals per token; then an isolated word is drawn from its list
WORDS_AT_A_TIME = 4096  # words per block
MOST_HALVINGS = 62  # greatest number of halvings of a weight; each uses one bit of a stream word


class TemParameters(Section):
    """Parameters of the mechanism tem."""

    beta: float = Field(
        0.001, ge=1e-12, lt=1, description="largest chance of a word beyond the radius γ"
    )
    length_penalty: int = Field(
        3,
        ge=0,
        le=16,
        description="number of times that the weight of a replacement is halved for each of its "
        "words after the first, so that texts keep their length; 0: all replacements "
        "have the same base weight, as in the paper",
    )


@register
class Tem(TruncatedExponential):
    """Replace w by u with probability proportional to μ(u)·exp(-ε·min(d(w,u), γ)/2), γ =
    (2/ε)·ln((1-β)(V-1)/β).

    The base measure μ(u) is 2^(-λ·(n(u) - 1)), where n is the number of words in u and λ the length
    penalty. It is public and the same for every w. It is 1 for single words; in the paper it is 1
    for all words.

    Source: Carvalho et al. (2023), Algorithms 2 and 3; γ from Theorem 4.2, neither rounded nor
    taken from the data. The paper draws a near word or ⊥ ("elsewhere") by Gumbel noise. Summing the
    two cases gives the distribution above, and any exact sampler of this distribution is the same
    mechanism.

    Privacy: ε·d metric DP with d the Euclidean distance. When w becomes w', min(d, γ) changes by at
    most d(w,w') (triangle inequality), the weights by a factor of at most exp(ε·d/2), and so does
    their sum, whatever μ is.

    Sampling is by rejection, which is exact for any envelope (upper bound on the weights). Uniform
    proposals are used if they are accepted often enough. Otherwise, words are proposed from shells
    of the exact nearest words, which contain 1, 1, 2, 4, 8, … words, each with the weight of its
    nearest word, and from all other words, with the weight of the farthest listed word. A proposal
    is accepted with a probability that is the ratio of its own weight to the weight with which it
    was proposed. If bounds on its distance decide, the distance is not computed. So a further
    epsilon costs only the computation of the weights of a few shells. Envelopes are whole numbers,
    uniform numbers have as many bits as needed, and decimal arithmetic makes every decision that
    rounding could change. So the distribution is exactly that of the distances in float64. The
    rounding of distances adds at most ``rounding`` nats per token to the loss.

    Attributes:
        vectors: (V, p) float32.
        beta: in (0, 1); the probability of a word beyond γ is at most this.
        near: the lists of near words.
        halvings: (V,) uint8, -log2 μ of each word.
    """

    name = "tem"
    law = "tem"
    exactness = (
        "words are drawn exactly by their weights; the rounding of distances to float64 adds "
        "less than 1e-10 to the "
        "exponent for each token"
    )
    near: Neighborhoods
    Parameters: ClassVar[type[Section]] = TemParameters

    def __init__(
        self,
        vectors: Vectors,
        near: NearTable | None = None,
        n_words: Ids | None = None,
        **parameters: Any,
    ) -> None:
        from lexveil.core.embeddings.neighborhoods import Neighborhoods
        from lexveil.core.embeddings.sketch import Sketch

        checked = self.checked(TemParameters, parameters)
        self.beta = checked.beta
        super().__init__(vectors)
        n = self.size
        beyond_first = np.zeros(n, dtype=np.int64) if n_words is None else n_words - 1
        self.halvings = np.minimum(checked.length_penalty * beyond_first, MOST_HALVINGS).astype(
            np.uint8
        )
        # The envelopes of all words and of a list, each at most 2^bits, have a total length that
        # fits into 62 bits; float64 represents all positions below 2^52 exactly.
        self.bits = min(52, LENGTH_BITS - (2 * n + 1).bit_length())
        self.norms = np.sqrt(np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64))
        self.sketch = Sketch(self.vectors, self.norms)
        self.near = Neighborhoods(self.vectors, near)
        size = self.near.size
        ends = {0, *(2**i for i in range(size.bit_length())), size}
        self.shells = np.array(sorted(end for end in ends if end <= size), dtype=np.int64)
        self._typical = _typical_distances(self.vectors, self.norms)

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the words of a space, with their lists of nearest words."""
        return cls(space.vectors(), space.near(), space.n_words(), **parameters)

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:  # noqa: ARG002
        """Return the log probability ln Pr[M(w) = u] of every word u for each of n token ids,
        shape (n, V).
        """
        from lexveil.core.embeddings.exact_search import distance_rows

        log_weight = self.log_weights(distance_rows(self.vectors, ids), epsilon)
        log_weight -= np.log(2) * self.halvings
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw the replacement of each token; each token uses its own random stream."""
        from lexveil.core.mechanisms.kernels import tem as sampler

        space = sampler.WordTable(self.vectors, self.halvings, self.sketch.rows, self.sketch.step)
        n = len(ids)
        out = np.full(n, PENDING)
        tokens = Draws(
            ids,
            epsilon,
            self.gamma(epsilon),
            noise,
            np.zeros(n, dtype=np.int64),
            np.empty((n, 3), dtype=np.int64),
        )

        def draw_uniformly(some: Draws, _: Ids) -> Ids:
            drawn: Ids = sampler.draw_uniformly(space, some, ATTEMPTS, self.bits)
            return drawn

        plain = np.flatnonzero(self.plain(ids, epsilon))
        draw_until_decided(draw_uniformly, self._accepts_uniform, tokens, plain, out)
        left = np.flatnonzero(out == PENDING)
        for chosen, table, places in self.near.tables(ids[left]):
            row_of = np.zeros(n, dtype=np.int64)
            row_of[left[chosen]] = places

            def draw_from_lists(
                some: Draws, rows: Ids, table: NearTable = table, row_of: Ids = row_of
            ) -> Ids:
                lists = (table.ids, table.distances, self.shells, row_of[rows])
                drawn: Ids = sampler.draw_from_lists(space, some, *lists, self.bits)
                return drawn

            draw_until_decided(draw_from_lists, self._accepts_listed, tokens, left[chosen], out)
        return out

    def _accepts_uniform(self, tokens: Draws, token: int) -> bool:
        """Return whether a uniform proposal is accepted, by exact arithmetic."""
        nonce = FIRST_NONCE + 2 * int(tokens.doubts[token, 2])
        return self._accepts(tokens, token, nonce)

    def _accepts_listed(self, tokens: Draws, token: int) -> bool:
        """Return whether a proposal from the shells of nearest words is accepted, by exact
        arithmetic.
        """
        nonce = FIRST_NONCE + 1 + 2 * int(tokens.doubts[token, 2])
        return self._accepts(tokens, token, nonce)

    def _accepts(self, tokens: Draws, token: int, nonce: int) -> bool:
        """Return whether the proposal of an undecided draw is accepted, by exact arithmetic."""
        from lexveil.core.embeddings.exact_search import pair_distances

        word = tokens.inputs[token : token + 1]
        proposed = tokens.doubts[token, :1]
        distance = float(pair_distances(self.vectors, word, proposed)[0])
        return self.accepts(distance, tokens, token, nonce)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d plus a bound on the loss that rounding of distances can
        add.
        """
        return epsilon * distance + self.rounding(epsilon)

    def plain(self, ids: Ids, epsilon: Floats) -> Flags:
        """Return (n,) whether each token is drawn by uniform proposals. The answer depends only on
        word and ε, never on the batch.

        The rule uses the weight at the word's root mean square distance. For most words, the
        average weight is larger.
        """
        weight = np.exp(-epsilon / 2 * np.minimum(self._typical[ids], self.gamma(epsilon)))
        enough: Flags = weight * UNIFORM >= 1
        return enough

    def needs_lists(self, epsilon: float) -> bool:
        """Return whether most words need their lists of nearest words at this epsilon."""
        return (
            epsilon > 0
            and not self.plain(np.arange(self.size), np.full(self.size, epsilon)).mean() > 0.5
        )


def _typical_distances(vectors: Vectors, norms: Floats) -> Floats:
    """Return the root mean square of the distances from each word to all words, shape (V,)."""
    if not len(vectors):
        return np.zeros(0)
    middle = vectors.mean(axis=0, dtype=np.float64)
    parts = [
        vectors[start : start + WORDS_AT_A_TIME].astype(np.float64) @ middle
        for start in range(0, len(vectors), WORDS_AT_A_TIME)
    ]
    squares = norms**2 - 2 * np.concatenate(parts) + (norms**2).mean()
    typical: Floats = np.sqrt(np.maximum(squares, 0.0))
    return typical
