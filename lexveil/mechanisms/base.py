"""Base classes and protocols of mechanisms, and the table in which mechanisms register.

A mechanism is one file of this package. Its class states name, metric, unit, guarantee and
exactness, names the model of its parameters, and registers itself; configuration, command line,
records, report and generic tests derive from it. Its file imports neither numba nor SciPy at the
top: compiled code stands in ``kernels`` and is loaded on first use.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from lexveil.errors import ParameterError
from lexveil.parameters import Section, validated
from lexveil.types import Floats, Ids, Noise, Vectors

if TYPE_CHECKING:
    from lexveil.embeddings.bigrams import Bigrams
    from lexveil.embeddings.neighborhoods import Neighborhoods
    from lexveil.mechanisms.causal_measure import CausalWords

P = TypeVar("P", bound=Section)
C = TypeVar("C", bound="type[Mechanism]")


class PublicCounts(NamedTuple):
    """Public counts of the V words of a mechanism: their lengths in words, their frequencies, and
    their bigrams.

    Attributes:
        n_words: (V,) number of words in each token.
        counts: (V,) occurrences of each token.
        bigrams: counts of adjacent tokens; None where they were not counted.
        causal: a language model of the tokens; None where none is used.
    """

    n_words: Ids
    counts: Ids
    bigrams: Bigrams | None = None
    causal: CausalWords | None = None


@runtime_checkable
class ClosedForm(Protocol):
    """A mechanism whose distribution is known in closed form."""

    def log_pmf(self, ids: Ids, epsilon: Floats) -> Floats:
        """Return log probabilities ln Pr[M(w) = u] for each of n ids and every word
        u, shape (n, W).
        """


@runtime_checkable
class OnNeighbors(Protocol):
    """Mechanism that uses lists of near words.

    Attributes:
        vectors: (V, p) vectors of its words.
        near: lists of near words.
    """

    vectors: Vectors
    near: Neighborhoods

    @property
    def size(self) -> int:
        """V, the number of words."""

    def needs_lists(self, epsilon: float) -> bool:
        """Whether most words need their lists at this epsilon."""


class Mechanism:
    """Replaces token ids by token ids, and states its guarantee.

    The randomness of one document is drawn first (``noise``), from that document's own generator;
    the rest (``replace``) is deterministic and may be done for many documents at once, in any
    batches, with the same result.

    Attributes:
        name: name in the registry.
        metric, unit: the distance of the guarantee, in full and in short.
        guarantee: the proven statement, as a formula.
        exactness: how exactly the distribution is sampled: a condition of the guarantee in every
            record.
        sampled: description of the replacement of a sampled token.
        on_lists: whether the mechanism is built over word orders (n_lists, W) instead of the
            vectors (W, p).
        on_neighbors: whether the mechanism uses lists of near words; it takes precomputed ones as
            ``near``.
        weighs_length: whether the mechanism weighs a replacement by its number of words; it takes
            the numbers for all words as ``n_words``.
        in_context: whether the mechanism also weighs a replacement by the text written before it;
            it takes ``counts``, ``bigrams`` and ``causal``.
        rank_remap: whether the output is read off a noisy vector, so that ``rank_remap`` may follow
            as post-processing.
        no_guarantee: why the guarantee does not hold as configured; None where it does.
        delta: probability with which a draw may exceed its loss.
        post_processing: later processing of the outputs, which does not see the input; None if
            there is none.
        size: W, the number of words.
    """

    name: str
    metric: str
    unit: str
    guarantee: str
    exactness: str = "continuous noise is drawn in float64, exact up to its rounding"
    sampled: str = "a uniform draw from the vocabulary"
    on_lists: bool = False
    on_neighbors: bool = False
    weighs_length: bool = False
    in_context: bool = False
    rank_remap: bool = False
    Parameters: ClassVar[type[Section]] = Section

    no_guarantee: str | None = None
    delta: float = 0.0
    post_processing: str | None = None
    size: int

    @classmethod
    def checked(cls, model: type[P], given: dict[str, object]) -> P:
        """Return the parameters as a validated model, with defaults for missing ones.

        Raises:
            ParameterError: if a parameter is unknown, mistyped or out of range.
        """
        return validated(model, given, named=lambda key: f"{cls.name}.{key}", by_name=True)

    def fresh(self) -> Self:
        """Return a copy for other texts, without the lists of near words that earlier
        texts caused.
        """
        mechanism = copy(self)
        for name, part in vars(self).items():
            if hasattr(part, "fresh"):
                setattr(mechanism, name, part.fresh())
        return mechanism

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Noise:
        """Draw the noise of n tokens with per-token ``epsilon`` (n,), in 1 / units of the metric;
        one row per token.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        raise NotImplementedError

    def replace(self, ids: Ids, epsilon: Floats, noise: Noise) -> Ids:
        """Return the replacement of each of n ids, shape (n,); ``epsilon`` must be that given to
        ``noise``.
        """
        raise NotImplementedError

    def replace_after(self, ids: Ids, epsilon: Floats, noise: Noise, before: Ids | None) -> Ids:  # noqa: ARG002
        """Return the replacement of each of n ids, given the token written before each: ``before``,
        (n,) rows of the embedding. Most mechanisms ignore it.
        """
        return self.replace(ids, epsilon, noise)

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the guarantee's distance for n pairs of ids, shape (n,)."""
        raise NotImplementedError

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate distances of n words to all W words, (n, W): for surveys, never for a
        guarantee.
        """
        every = np.arange(self.size)
        return np.array([self.distance(np.full(self.size, word), every) for word in ids.tolist()])

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """The privacy map: an upper bound on |ln Pr[M(w)=y] - ln Pr[M(w')=y]| for n tokens, in
        nats, shape (n,).

        A class declares the map for its own code: a derived class without its own declaration
        claims nothing.

        Args:
            epsilon: (n,) in 1 / units of the metric.
            distance: (n,) distance between w and w'.
        """
        raise NotImplementedError

    @property
    def is_proven(self) -> bool:
        """Whether this class itself declares ``privacy_loss``, and it holds as configured."""
        return self.no_guarantee is None and "privacy_loss" in type(self).__dict__


def check_epsilon(epsilon: Floats) -> None:
    """Raise ParameterError unless every epsilon is finite and greater than 0."""
    if not (np.isfinite(epsilon).all() and (epsilon > 0).all()):
        raise ParameterError("every epsilon of a perturbed token must be finite and greater than 0")


class EuclideanMechanism(Mechanism):
    """Mechanism over word vectors, whose guarantee is in their Euclidean distance.

    Attributes:
        vectors: (V, p) vectors of the words that may go in and come out.
        search: exact search for the nearest words.
    """

    metric = "Euclidean distance of the embedding"
    unit = "embedding distance"
    guarantee = "Pr[M(w)=y] <= exp(ε·d(w,w'))·Pr[M(w')=y]"

    def __init__(self, vectors: Vectors) -> None:
        from lexveil.embeddings.exact_search import ExactSearch

        self.search = ExactSearch(vectors)
        self.vectors = self.search.vectors
        self.size = len(self.vectors)

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the distance d for n pairs of ids, shape (n,)."""
        from lexveil.embeddings.exact_search import pair_distances

        return pair_distances(self.vectors, first, second)

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate distances, see ``Mechanism``; the error is about 1e-3 of the length of
        the vectors, as float32 products cancel.
        """
        return product_distances(self.vectors[ids], self.vectors)


def product_distances(first: Vectors, second: Vectors) -> Floats:
    """Return Euclidean distances of n vectors to m others by float32 products, (n, m)."""
    squares = [np.einsum("vp,vp->v", vectors, vectors) for vectors in (first, second)]
    found = squares[0][:, None] + squares[1] - 2 * (first @ second.T)
    distances: Floats = np.sqrt(np.maximum(found, 0), dtype=np.float64)
    return distances


REGISTERED: dict[str, type[Mechanism]] = {}


def register(mechanism: C) -> C:
    """Enter a mechanism into the registry, under the name of its module."""
    module = mechanism.__module__.rpartition(".")[2]
    if mechanism.name != module:
        raise ParameterError(
            f"mechanism {mechanism.name} stands in {module}.py; a mechanism is the module of "
            "its name"
        )
    REGISTERED[mechanism.name] = mechanism
    return mechanism
