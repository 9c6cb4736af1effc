"""TEM whose words also suit the one written before: a public bigram model weighs what may come out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from lexveil.embeddings.bigrams import Bigrams
from lexveil.mechanisms.base import check_epsilon, register
from lexveil.mechanisms.base_measure import MOST_KAPPA, BaseMeasure, base_measure
from lexveil.mechanisms.rejection import DRAWN, KEPT
from lexveil.mechanisms.tem import FIRST_NONCE, Tem, TemParameters
from lexveil.parameters import Section
from lexveil.types import Flags, Floats, Ids, Vectors, Words

if TYPE_CHECKING:
    from lexveil.embeddings.neighborhoods import NearTable


class TemContextParameters(TemParameters):
    """Parameters of tem_context."""

    kappa: float = Field(
        1.0, ge=0, le=MOST_KAPPA, description="exponent of the public bigram model; 0: words weigh as in tem"
    )


class TextTokens(NamedTuple):
    """n tokens of texts, in order, as they are written.

    Attributes:
        is_first: (n,) whether a text begins.
        kind: (n,) DRAWN, FOLLOWS, KEPT or SKIPPED of ``rejection``.
        about: (n,) of one that is drawn its number among the drawn, of one that follows the place of the one that it
            follows, of one that is kept its row among the tokens that bigrams know, or -1.
    """

    is_first: Flags
    kind: Ids
    about: Ids


@register
class TemContext(Tem):
    """Replace w by u with probability proportional to m(u | c)·exp(-ε·min(d(w,u), γ)/2), c the word written before.

    m is a public base measure (``base_measure``): a bigram model of public text to the power κ, in whole numbers. c is
    a word that was drawn before, or kept: what is published already. The rest is as in ``Tem``.

    Privacy: for each token ε·d, d the Euclidean distance, whatever c is: m depends on c and u alone, so that the
    weights and their sum move by at most exp(ε·d/2) each when w becomes w'. The tokens of a text are an adaptive
    composition.

    Attributes:
        kappa: κ.
        bigrams: the counts that m is made of.
        mass: m.
    """

    name = "tem_context"
    exactness = (
        "words are drawn exactly by their weights, in which public counts of what follows the word written just before "
        "have part; the rounding of distances to float64 adds less than 1e-10 to the exponent for each token"
    )
    sampled = "a draw from the vocabulary by public counts of what follows the word written just before"
    in_context = True
    Parameters: ClassVar[type[Section]] = TemContextParameters

    def __init__(
        self,
        vectors: Vectors,
        near: NearTable | None = None,
        n_words: Ids | None = None,
        counts: Ids | None = None,
        bigrams: Bigrams | None = None,
        **parameters: Any,
    ) -> None:
        from lexveil.mechanisms.kernels.tem_context import ENVELOPE_BITS, FINE_BITS, Mass

        checked = self.checked(TemContextParameters, parameters)
        super().__init__(vectors, near, n_words, beta=checked.beta, length_penalty=checked.length_penalty)
        counts = np.ones(self.size, dtype=np.int64) if counts is None else counts
        none = np.empty(0, dtype=np.int64)
        self.kappa, self.bigrams = checked.kappa, bigrams or Bigrams.of(none, none, none, self.size)
        self.bits = ENVELOPE_BITS + FINE_BITS
        self.mass: BaseMeasure = base_measure(counts, self.bigrams, self.kappa, self.halvings)
        single, starts, words, after = self.mass
        self._sums = Mass(single, _sums(single), starts, words.astype(np.int32), after, _sums(after))

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:
        """Log probabilities of every word u for each of n ids after the word ``before``, (n, V); -1: after none."""
        from lexveil.embeddings.exact_search import distance_rows

        check_epsilon(epsilon)
        score = np.minimum(distance_rows(self.vectors, ids), self.gamma(epsilon)[:, None])
        log_weight: Floats = np.log(self.mass.of(before)) - epsilon[:, None] / 2 * score
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw each token as if it were a text of its own."""
        return self.replace_after(ids, epsilon, noise, None)

    def replace_after(self, ids: Ids, epsilon: Floats, noise: Words, before: Ids | None) -> Ids:
        """Draw each token as if it were a text of its own, after the tokens (n,) ``before``, or after none."""
        n, kind = len(ids), np.tile((KEPT, DRAWN), len(ids))
        about = np.full(2 * n, -1)
        about[1::2] = np.arange(n)
        if before is not None:
            about[::2] = before
        return self.replace_texts(TextTokens(kind == KEPT, kind, about), ids, epsilon, noise)[1::2]

    def replace_texts(
        self, texts: TextTokens, ids: Ids, epsilon: Floats, noise: Words, written: Ids | None = None
    ) -> Ids:
        """Draw the tokens of texts in their order, each after what is written for those before it.

        Args:
            texts: n tokens.
            ids: (m,) the words of those that are drawn; -1: unknown, drawn by the base measure alone.
            epsilon: (m,) of each; 0 of unknown ones.
            noise: (m, 4) their keys.
            written: (V,) of what is written for each word that is drawn, its row among the tokens that bigrams know;
                None: they are the words.

        Returns:
            (n,) the word that is drawn for each token; -1 of those that are kept or skipped.
        """
        from lexveil.mechanisms.kernels import tem as tem_sampler
        from lexveil.mechanisms.kernels import tem_context as sampler

        n, own, known = len(texts.kind), np.arange(self.size), ids >= 0
        words, place = np.unique(ids[known], return_inverse=True)
        lists, places, gamma = self.near.lists(words), np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids))
        places[known], gamma[known] = place, self.gamma(epsilon[known])
        walk = sampler.Walk(*texts, np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64))
        drawn = sampler.Drawn(ids, epsilon, gamma, noise, places, np.zeros(len(ids), dtype=np.int64))
        space = tem_sampler.Space(self.vectors, self.halvings, self.sketch.rows, self.sketch.step)
        near = (lists.ids, lists.distances, own if written is None else written)
        doubt, start = np.empty(3, dtype=np.int64), 0
        while (start := sampler.walk_on(space, self._sums, walk, drawn, near, start, doubt)) < n:
            token, (proposed, position, number) = texts.about[start], doubt.tolist()
            one = slice(token, token + 1)
            none = np.zeros(1, dtype=np.int64)
            alone = tem_sampler.Tokens(ids[one], epsilon[one], gamma[one], noise[one], none, none[None])
            if self._is_accepted(alone, proposed, position, FIRST_NONCE + number):
                walk.drawn[start] = proposed
            drawn.refused[token] = number + 1
        return walk.drawn

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """ε·d whatever was written before, and what the rounding of distances can add; m is in whole numbers."""
        return epsilon * distance + self.rounding(epsilon)

    def needs_lists(self, epsilon: float) -> bool:
        """See ``OnNeighbors``."""
        return epsilon > 0


def _sums(values: Ids) -> Ids:
    """(n + 1,) the sum of the values before each, and of all."""
    return np.concatenate([[0], np.cumsum(values)])
