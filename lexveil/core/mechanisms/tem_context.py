"""TEM in context: the Truncated Exponential Mechanism with a public language model, which gives
each replacement a weight that depends on the text written before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from lexveil.base.errors import ParameterError
from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, ModelRows, Vectors, WordNumbers, Words
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.mechanisms.base import Generators, Space, TextTokens, by_generator, register
from lexveil.core.mechanisms.base_measure import MOST_KAPPA, BaseMeasure, base_measure
from lexveil.core.mechanisms.causal_measure import CausalMeasure, CausalWords, Course
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS, KEPT, SKIPPED, Draws
from lexveil.core.mechanisms.tem import MOST_HALVINGS, Tem, TemParameters
from lexveil.core.mechanisms.truncated_exponential import FIRST_NONCE

if TYPE_CHECKING:
    from lexveil.core.embeddings.neighborhoods import NearTable
    from lexveil.core.mechanisms.kernels.tem_context import Drawn, Mass, Near, Walk

BIGRAMS = "bigrams"
NONE = np.zeros(1, dtype=np.int64)
RARER = 20  # number of halvings of the weight of words outside ``common_words``
FOLLOWING = "public counts of the words after the word written just before"


class TemContextParameters(TemParameters):
    """Parameters of the mechanism tem_context."""

    kappa: float = Field(
        1.0,
        ge=0,
        le=MOST_KAPPA,
        description="exponent of the public model of words; 0: the model has no effect, as in tem",
    )
    common_words: int | None = Field(
        None,
        ge=2,
        description="number of common words, the most frequent by public counts; the weight of "
        "any other word is multiplied by 2^-20, so that it is hardly ever drawn at the ε of a "
        "level; null: the weights of all words follow their counts",
    )
    model: Literal["bigrams", "smollm2"] = Field(
        "bigrams",
        description="the public model: counts of bigrams; or SmolLM2-135M, which reads all text "
        "written before (extra neural; English; slow)",
    )


@register
class TemContext(Tem):
    """Replace w by u with probability proportional to m(u | c)·exp(-ε·min(d(w,u), γ)/2), where c is
    the text written before.

    m is a public base measure to the power κ, in whole numbers. It comes either from bigrams of
    public text (``base_measure``), where c is the word written just before, or from a causal
    language model (``causal_measure``), where c is all text before. c consists of earlier outputs
    and kept words, which are published anyway. Everything else is as in ``Tem``.

    Privacy: ε·d for each token, d the Euclidean distance, for every c. m depends only on c and u,
    so the weights and their sum change by a factor of at most exp(ε·d/2) each when w becomes w'.
    The tokens of a text are an adaptive composition.

    Attributes:
        kappa: κ.
        halvings: (V,) uint8, halvings by the length penalty and for words outside ``common_words``.
        bigrams: the counts from which m is computed; not used with a language model.
        mass: m.
    """

    name = "tem_context"
    law = "tem_context"
    exactness = (
        f"words are drawn exactly by their weights, which depend on {FOLLOWING}; the rounding "
        "of distances to float64 "
        "adds less than 1e-10 to the exponent for each token"
    )
    sampled = f"a draw from the vocabulary by {FOLLOWING}"
    Parameters: ClassVar[type[Section]] = TemContextParameters

    def __init__(
        self,
        vectors: Vectors,
        near: NearTable | None = None,
        n_words: Ids | None = None,
        counts: Ids | None = None,
        bigrams: Bigrams | None = None,
        causal: CausalWords | None = None,
        **parameters: Any,
    ) -> None:
        from lexveil.core.mechanisms.kernels.tem_context import ENVELOPE_BITS, FINE_BITS

        checked = self.checked(TemContextParameters, parameters)
        super().__init__(
            vectors, near, n_words, beta=checked.beta, length_penalty=checked.length_penalty
        )
        counts = np.ones(self.size, dtype=np.int64) if counts is None else counts
        none = np.empty(0, dtype=np.int64)
        self.kappa, self.bigrams = checked.kappa, bigrams or Bigrams.of(none, none, none, self.size)
        self.bits = ENVELOPE_BITS + FINE_BITS
        if checked.common_words is not None:
            rarer = np.argsort(-counts, kind="stable")[checked.common_words :]
            self.halvings[rarer] = np.minimum(self.halvings[rarer] + RARER, MOST_HALVINGS)
        self.mass: BaseMeasure | CausalMeasure
        if checked.model == BIGRAMS:
            self.mass = base_measure(counts, self.bigrams, self.kappa, self.halvings)
            self._sums = _with_sums(self.mass)
        elif causal is None:
            raise ParameterError(
                f"{self.name}.model {checked.model}: the words for the language model are missing"
            )
        else:
            self.mass = CausalMeasure(causal, counts, self.kappa, self.halvings)
            self.law = "tem_context by a language model"
            self.reads_texts = True
            said = (
                f"the probabilities of the language model {checked.model} after all text written "
                "before"
            )
            self.exactness = self.exactness.replace(FOLLOWING, said)
            self.sampled = self.sampled.replace(FOLLOWING, said)

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the words of a space, with a public model of which words follow
        which.
        """
        model = cls.checked(TemContextParameters, dict(parameters)).model
        return cls(
            space.vectors(),
            space.near(),
            space.n_words(),
            space.counts(),
            space.bigrams() if model == BIGRAMS else None,
            None if model == BIGRAMS else space.causal(model),
            **parameters,
        )

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:
        """Return the log probability of every word u for each of n token ids, (n, V).

        Args:
            before: the word before each id; -1 if no word precedes the id.
        """
        from lexveil.core.embeddings.exact_search import distance_rows

        log_weight = self.log_weights(distance_rows(self.vectors, ids), epsilon)
        log_weight += np.log(self.mass.of(before))
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw the replacement of each token as if it were a whole text, without text before it."""
        return self.replace_after(ids, epsilon, noise, None)

    def replace_after(self, ids: Ids, epsilon: Floats, noise: Words, before: Ids | None) -> Ids:
        """Draw the replacement of each token as if it were a text that begins after the token
        ``before``.

        Args:
            before: (n,) row of the token before each; None if no token comes before any of them.
        """
        n = len(ids)
        kind = np.tile((KEPT, DRAWN), len(ids))
        about = np.full(2 * n, -1)
        about[1::2] = np.arange(n)
        if before is not None:
            about[::2] = before
        texts = TextTokens(kind == KEPT, kind, about)
        return self.replace_in_order(texts, ids, epsilon, noise)[1::2]

    def replace_texts(
        self,
        texts: TextTokens,
        ids: WordNumbers,
        epsilon: Floats,
        generators: Generators,
        written: ModelRows | None = None,
        words: Sequence[str] = (),
    ) -> WordNumbers:
        """Draw the replacements in the order of the text, each given the outputs of the tokens
        before it. ``Mechanism`` describes the arguments. An unknown word is drawn by the base
        measure alone.
        """
        from lexveil.core.mechanisms.noise.keystream import KEY_WORDS, draw_words

        keys = [np.empty((0, KEY_WORDS), dtype=np.uint64)]
        for start, stop, generator in by_generator(texts, generators):
            keys.append(draw_words(stop - start, KEY_WORDS, generator))
        noise = np.concatenate(keys)
        return WordNumbers(self.replace_in_order(texts, ids, epsilon, noise, written, words))

    def replace_in_order(
        self,
        texts: TextTokens,
        ids: Ids,
        epsilon: Floats,
        noise: Words,
        written: Ids | None = None,
        words: Sequence[str] = (),
    ) -> Ids:
        """Draw the tokens of texts as ``replace_texts`` does, but with given noise, which consists
        of the random keys of the drawn tokens, (m, 4).
        """
        from lexveil.core.mechanisms.kernels import tem_context as sampler

        own = np.arange(self.size)
        known = ids >= 0
        sources, place = np.unique(ids[known], return_inverse=True)
        lists = self.near.lists(sources)
        places = np.zeros(len(ids), dtype=np.int64)
        gamma = np.zeros(len(ids))
        places[known], gamma[known] = place, self.gamma(epsilon[known])
        drawn = sampler.Drawn(
            ids, epsilon, gamma, noise, places, np.zeros(len(ids), dtype=np.int64)
        )
        near = (lists.ids, lists.distances, own if written is None else written)
        if isinstance(self.mass, CausalMeasure):
            return self._replace_by_model(self.mass, texts, drawn, near, words)
        return self._walk(self._sums, texts, drawn, near)

    def _walk(self, sums: Mass, texts: TextTokens, drawn: Drawn, near: Near) -> Ids:
        """Draw the word for each token of texts, with a base measure that depends on the word
        written before.
        """
        from lexveil.core.mechanisms.kernels import tem as tem_sampler
        from lexveil.core.mechanisms.kernels import tem_context as sampler

        n = len(texts.kind)
        walk: Walk = sampler.Walk(
            *texts, np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
        )
        space = tem_sampler.WordTable(
            self.vectors, self.halvings, self.sketch.rows, self.sketch.step
        )
        doubt = np.empty(3, dtype=np.int64)
        start = 0
        while (start := sampler.walk_on(space, sums, walk, drawn, near, start, doubt)) < n:
            token = texts.about[start]
            proposed, _, number = doubt.tolist()
            one = slice(token, token + 1)
            undecided = Draws(
                drawn.ids[one],
                drawn.epsilon[one],
                drawn.gamma[one],
                drawn.keys[one],
                drawn.refused[one],
                doubt[None],
            )
            if self._accepts(undecided, 0, FIRST_NONCE + number):
                walk.drawn[start] = proposed
            drawn.refused[token] = number + 1
        return walk.drawn

    def _replace_by_model(
        self,
        measure: CausalMeasure,
        texts: TextTokens,
        drawn: Drawn,
        near: Near,
        words: Sequence[str],
    ) -> Ids:
        """Draw the word for each token of texts, with a base measure from a language model, which
        reads only kept words and earlier outputs.
        """
        out = np.full(len(texts.kind), -1, dtype=np.int64)
        kind = texts.kind.tolist()
        about = texts.about.tolist()
        of_kept = measure.model.pieces([[word] for word in words])
        one = np.ones(1, dtype=np.bool_)

        def pieces(place: int) -> list[int] | None:
            number = about[place]
            if kind[place] == SKIPPED or (kind[place] == KEPT and number == -1):
                return []
            if kind[place] == KEPT:
                return measure.pieces[number] if number >= 0 else of_kept[-2 - number]
            word = out[number if kind[place] == FOLLOWS else place]
            return None if word < 0 else measure.pieces[near[2][word]]

        def draw(places: list[int], mass: Ids) -> None:
            for place, single in zip(places, mass, strict=True):
                sums = _with_sums(BaseMeasure(single, NONE[:1], NONE[:0], NONE[:0]))
                alone = TextTokens(one, np.array([DRAWN]), texts.about[place : place + 1])
                out[place] = self._walk(sums, alone, drawn, near)[0]

        is_drawn = texts.kind == DRAWN
        follows = texts.kind == FOLLOWS
        measure.walk(Course(texts.is_first, is_drawn, pieces, draw, bool(follows.any())))
        out[follows] = out[texts.about[follows]]
        return out

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d plus a bound on the loss that rounding of distances can add.
        The bound holds for every text written before; m has no rounding error.
        """
        return epsilon * distance + self.rounding(epsilon)

    def needs_lists(self, epsilon: float) -> bool:
        """Return whether most words need their lists of nearest words at this epsilon."""
        return epsilon > 0


def _with_sums(mass: BaseMeasure) -> Mass:
    """Convert a base measure to the input of the compiled sampler, which has cumulative sums."""
    from lexveil.core.mechanisms.kernels.tem_context import Mass

    single, starts, words, after = mass
    return Mass(single, _sums(single), starts, words.astype(np.int32), after, _sums(after))


def _sums(values: Ids) -> Ids:
    """Return (n + 1,) cumulative sums of the values, beginning with 0."""
    return np.concatenate([[0], np.cumsum(values)])
